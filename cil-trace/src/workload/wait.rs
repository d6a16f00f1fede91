//! How the command ended and what it used, from wait4(2).

use rustix::process::Pid;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

/// How the command ended and what it used, its descendants that were waited for included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExitInfo {
    /// Its exit status, unless a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// From the gate's opening to its end, nanoseconds.
    pub wall_ns: u64,
    /// CPU time in user mode, nanoseconds.
    pub user_ns: u64,
    /// CPU time in kernel mode, nanoseconds.
    pub sys_ns: u64,
    /// Peak resident memory of its largest process, bytes.
    pub max_rss_bytes: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Times it gave up the CPU to wait.
    pub voluntary_context_switches: u64,
    /// Times the CPU was taken from it.
    pub involuntary_context_switches: u64,
    /// Blocks of 512 bytes read from storage.
    pub fs_inputs: u64,
    /// Blocks of 512 bytes written to storage.
    pub fs_outputs: u64,
}

impl ExitInfo {
    /// As a shell tells it: the status, or 128 and the signal.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let code = self
            .status
            .unwrap_or_else(|| 128 + self.signal.unwrap_or(0));
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

/// Waits for a child that has ended, and frees its pid.
///
/// # Errors
/// It is no child of ours, or was waited for already.
pub(super) fn reap(pid: Pid, wall: Duration) -> io::Result<ExitInfo> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both point to writable memory of the right type, for which all zeroes is valid.
    let (waited, usage) = unsafe {
        let pid = pid.as_raw_nonzero().get();
        (
            libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()),
            usage.assume_init(),
        )
    };
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    let status = ExitStatus::from_raw(status);
    Ok(ExitInfo {
        status: status.code(),
        signal: status.signal(),
        wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
        user_ns: nanoseconds(usage.ru_utime),
        sys_ns: nanoseconds(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss.cast_unsigned() * 1024,
        minor_faults: usage.ru_minflt.cast_unsigned(),
        major_faults: usage.ru_majflt.cast_unsigned(),
        voluntary_context_switches: usage.ru_nvcsw.cast_unsigned(),
        involuntary_context_switches: usage.ru_nivcsw.cast_unsigned(),
        fs_inputs: usage.ru_inblock.cast_unsigned(),
        fs_outputs: usage.ru_oublock.cast_unsigned(),
    })
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_a_shells() {
        let exited = |status| ExitInfo {
            status: Some(status),
            ..ExitInfo::default()
        };
        assert_eq!(
            [0, 3, 255].map(|status| exited(status).exit_code()),
            [0, 3, 255]
        );
        let killed = ExitInfo {
            signal: Some(libc::SIGKILL),
            ..ExitInfo::default()
        };
        assert_eq!(killed.exit_code(), 137);
    }
}
