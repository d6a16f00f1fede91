//! How long each process has waited for locks: by process id, in an array.

use crate::kernel::{TASK_COMM, TASK_GROUP_LEADER, pointer, read};
use crate::maps::{PROCESS_WAITS, WORKLOAD};
use crate::stat::{atomic_add, lose};
use aya_ebpf::helpers::generated::bpf_get_current_task;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;

/// Places for processes; a power of two. User space empties those of processes that have ended.
pub const PROCESS_PLACES: u32 = 1 << 12;
/// Places that are looked at for one process.
const STEPS: u32 = 8;

/// The current process, `pid`, has waited.
#[inline(always)]
pub fn waited(probe: Probe, pid: u32, ns: u64) {
    // The idle tasks' waits are nobody's.
    if pid == 0 {
        return;
    }
    let first = pid.wrapping_mul(0x9e37_79b1) >> 16;
    for step in 0..STEPS {
        let Some(process) = PROCESS_WAITS.get_ptr_mut((first + step) & (PROCESS_PLACES - 1)) else {
            return;
        };
        // SAFETY: a map value that outlives the program. Of two processes that take a place at the
        // same moment, the later one has it.
        unsafe {
            if (*process).pid == 0 {
                (*process).comm = comm().unwrap_or_default();
                (*process).workload = u32::from(WORKLOAD.get_ptr(pid).is_some());
                (*process).pid = pid;
            }
            if (*process).pid == pid {
                atomic_add(&raw mut (*process).ns, ns);
                return;
            }
        }
    }
    lose(probe, LossCause::MapFull);
}

/// Command name of the current process, which is its leader's.
#[inline(always)]
fn comm() -> Option<[u8; 16]> {
    // SAFETY: the helper has no precondition.
    let leader = pointer(unsafe { bpf_get_current_task() }, &TASK_GROUP_LEADER)?;
    read(leader, &TASK_COMM)
}
