//! The calls of bpf(2) that aya does not make : programs on what modules' BTF describes, and what links
//! have missed.

use aya::Pod;
use aya_obj::generated::{
    bpf_attach_type, bpf_attr, bpf_btf_info, bpf_cmd, bpf_insn, bpf_link_info, bpf_link_type,
    bpf_perf_event_type, bpf_prog_type,
};
use procfs::process::FDTarget;
use std::ffi::{CStr, CString};
use std::io;
use std::mem::{self, zeroed};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// What a program of `BPF_PROG_TYPE_TRACING` is loaded with.
pub struct Tracing<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its licence.
    pub license: &'a CStr,
    /// Its code, with maps and calls relocated.
    pub instructions: &'a [bpf_insn],
    /// fentry, fexit or tp_btf.
    pub kind: bpf_attach_type,
    /// What it is attached to, by its number in BTF.
    pub target: u32,
    /// The module's BTF that has the number; `None` for vmlinux's.
    pub module: Option<BorrowedFd<'a>>,
}

/// Why a program was not loaded.
#[derive(Debug)]
pub struct Rejected {
    /// What the kernel answered.
    pub error: io::Error,
    /// What the verifier said; empty if it did not get that far.
    pub log: String,
}

/// Room for the verifier's log, of which only the end is told.
const LOG_SIZE: usize = 1 << 20;

/// Loads a program.
///
/// # Errors
///
/// The kernel refused it.
pub fn load(program: &Tracing<'_>) -> Result<OwnedFd, Rejected> {
    match try_load(program, &mut []) {
        Ok(fd) => Ok(fd),
        Err(error) => {
            let mut log = vec![0; LOG_SIZE];
            // The log may be cut off (ENOSPC), or the program be let in this time (EAGAIN before).
            if let Ok(fd) = try_load(program, &mut log) {
                return Ok(fd);
            }
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(&log[..end]).into_owned();
            Err(Rejected { error, log })
        }
    }
}

fn try_load(program: &Tracing<'_>, log: &mut [u8]) -> io::Result<OwnedFd> {
    let mut attr = attr();
    let mut name = [0; 16];
    // As much of it as there is room for, with a NUL behind.
    for (to, from) in name[..15].iter_mut().zip(program.name.bytes()) {
        *to = from.cast_signed();
    }
    // SAFETY: `load` is the member of the union that BPF_PROG_LOAD reads; all of it is zeroed.
    let load = unsafe { &mut attr.__bindgen_anon_3 };
    load.prog_type = bpf_prog_type::BPF_PROG_TYPE_TRACING as u32;
    load.expected_attach_type = program.kind as u32;
    load.insns = program.instructions.as_ptr() as u64;
    load.insn_cnt = u32::try_from(program.instructions.len()).unwrap_or(u32::MAX);
    load.license = program.license.as_ptr() as u64;
    load.prog_name = name;
    load.attach_btf_id = program.target;
    if let Some(module) = program.module {
        load.__bindgen_anon_1.attach_btf_obj_fd = module.as_raw_fd().cast_unsigned();
    }
    if !log.is_empty() {
        load.log_level = 1;
        load.log_buf = log.as_mut_ptr() as u64;
        load.log_size = u32::try_from(log.len()).unwrap_or(u32::MAX);
    }
    // SAFETY: instructions, licence and log live until the call returns.
    unsafe { bpf_fd(bpf_cmd::BPF_PROG_LOAD, &mut attr) }
}

/// Attaches a program of `BPF_PROG_TYPE_TRACING` to what it was loaded for, until the link is
/// closed.
///
/// # Errors
///
/// As bpf(2).
pub fn attach(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut attr = attr();
    attr.raw_tracepoint.prog_fd = program.as_raw_fd().cast_unsigned();
    // SAFETY: it holds no pointer.
    unsafe { bpf_fd(bpf_cmd::BPF_RAW_TRACEPOINT_OPEN, &mut attr) }
}

/// The BTF of a loaded module.
///
/// # Errors
///
/// As bpf(2): EPERM without CAP_SYS_ADMIN, ENOENT if the module has none or is not loaded.
pub fn module_btf(module: &str) -> io::Result<OwnedFd> {
    let mut id = 0;
    loop {
        let mut next = attr();
        next.__bindgen_anon_6.__bindgen_anon_1.start_id = id;
        // SAFETY: it holds no pointer.
        unsafe { bpf(bpf_cmd::BPF_BTF_GET_NEXT_ID, &mut next) }?;
        // SAFETY: the member of the union that the call wrote.
        id = unsafe { next.__bindgen_anon_6.next_id };
        let mut open = attr();
        open.__bindgen_anon_6.__bindgen_anon_1.btf_id = id;
        // SAFETY: it holds no pointer.
        let fd = match unsafe { bpf_fd(bpf_cmd::BPF_BTF_GET_FD_BY_ID, &mut open) } {
            // Gone meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => continue,
            fd => fd?,
        };
        if is_of_module(fd.as_fd(), module)? {
            return Ok(fd);
        }
    }
}

/// Takes an entry out of a hash map, and tells its value as it was last.
///
/// # Errors
///
/// As bpf(2): ENOENT if there is none, EINVAL on kernels before 5.14, which cannot.
pub fn lookup_and_delete<K: Pod, V: Pod>(map: BorrowedFd<'_>, key: &K) -> io::Result<V> {
    // SAFETY: a `Pod` may be all zero.
    let mut value: V = unsafe { zeroed() };
    let mut attr = attr();
    // SAFETY: the member of the union that the command reads; all of it is zeroed.
    let element = unsafe { &mut attr.__bindgen_anon_2 };
    element.map_fd = map.as_raw_fd().cast_unsigned();
    element.key = std::ptr::from_ref(key) as u64;
    element.__bindgen_anon_1.value = std::ptr::from_mut(&mut value) as u64;
    // SAFETY: the caller's types are those of the map, so that key and value are as long as the
    // kernel takes them to be.
    unsafe { bpf(bpf_cmd::BPF_MAP_LOOKUP_AND_DELETE_ELEM, &mut attr) }?;
    Ok(value)
}

fn is_of_module(btf: BorrowedFd<'_>, module: &str) -> io::Result<bool> {
    let mut name = [0u8; 64];
    // SAFETY: a structure of integers.
    let mut info: bpf_btf_info = unsafe { zeroed() };
    info.name = name.as_mut_ptr() as u64;
    info.name_len = u32::try_from(name.len()).unwrap_or(0);
    // SAFETY: `info` points to a buffer of the length that it states.
    unsafe { info_of(btf, &mut info) }?;
    let wanted = CString::new(module)?;
    Ok(info.kernel_btf != 0 && name.starts_with(wanted.as_bytes_with_nul()))
}

/// What a link tells of the kprobe or kretprobe behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KprobeLink {
    /// Number of its program.
    pub program: u32,
    /// Hits at which the program did not run, since it was attached.
    pub missed: u64,
}

/// What is behind a file descriptor; `None` if it is no kprobe's link, or this kernel does not tell.
///
/// Kernels before 5.15 have no such links, those before 6.6 say nothing of them, and 6.6 says 0.
fn kprobe_link(link: BorrowedFd<'_>) -> Option<KprobeLink> {
    // SAFETY: a structure of integers, for which all zero is a value.
    let mut info: bpf_link_info = unsafe { zeroed() };
    // SAFETY: no member points anywhere.
    unsafe { info_of(link, &mut info) }.ok()?;
    if info.type_ != bpf_link_type::BPF_LINK_TYPE_PERF_EVENT as u32 {
        return None;
    }
    // SAFETY: the member of the union for this type of link.
    let event = unsafe { info.__bindgen_anon_1.perf_event };
    let kinds = [
        bpf_perf_event_type::BPF_PERF_EVENT_KPROBE as u32,
        bpf_perf_event_type::BPF_PERF_EVENT_KRETPROBE as u32,
    ];
    if !kinds.contains(&event.type_) {
        return None;
    }
    Some(KprobeLink {
        program: info.prog_id,
        // SAFETY: likewise for this type of event.
        missed: unsafe { event.__bindgen_anon_1.kprobe.missed },
    })
}

/// What the kernel says of every kprobe and kretprobe that this process has attached.
///
/// By the process's own table of files, as aya gives its links' to nobody.
pub fn kprobe_links() -> Vec<KprobeLink> {
    let Ok(own) = procfs::process::Process::myself().and_then(|own| own.fd()) else {
        return Vec::new();
    };
    own.filter_map(Result::ok)
        .filter(|file| is_bpf_link(&file.target))
        .filter_map(|file| {
            // SAFETY: as long as it is looked at here it is open, or the call says that it is not.
            kprobe_link(unsafe { BorrowedFd::borrow_raw(file.fd) })
        })
        .collect()
}

fn is_bpf_link(target: &FDTarget) -> bool {
    matches!(target, FDTarget::AnonInode(name) if name.starts_with("bpf_link") || name.starts_with("bpf-link"))
}

/// Fills `info`.
///
/// # Safety
///
/// `T` must be the info structure of what `fd` is, and pointers in it valid.
unsafe fn info_of<T>(fd: BorrowedFd<'_>, info: &mut T) -> io::Result<()> {
    let mut attr = attr();
    attr.info.bpf_fd = fd.as_raw_fd().cast_unsigned();
    attr.info.info_len = u32::try_from(size_of::<T>()).unwrap_or(0);
    attr.info.info = std::ptr::from_mut(info) as u64;
    // SAFETY: `info` is as long as stated; the rest is the caller's promise.
    unsafe { bpf(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut attr) }.map(drop)
}

fn attr() -> bpf_attr {
    // SAFETY: a union of structures of integers, for all of which all zero is a value.
    unsafe { zeroed() }
}

/// # Safety
///
/// Pointers in `attr` must be valid for what `command` does with them.
unsafe fn bpf(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<i64> {
    // SAFETY: `attr` is as long as stated; the rest is the caller's promise.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_uint,
            std::ptr::from_mut(attr),
            mem::size_of::<bpf_attr>(),
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// # Safety
///
/// As [`bpf`]; `command` must be one that returns a new file descriptor.
unsafe fn bpf_fd(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(command, attr) }?;
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: a new file descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
