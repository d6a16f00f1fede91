#![expect(
    clippy::unwrap_used,
    reason = "a failed test should stop where it fails"
)]

use super::*;

/// Writes BTF as the kernel's Documentation/bpf/btf.rst lays it out.
struct Writer {
    types: Vec<u32>,
    strings: Vec<u8>,
    /// Id of the last type.
    last: u32,
    /// Where the strings begin: past those of the kernel that a module's go on from.
    first_string: u32,
}

const PTR: u32 = 2;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FWD: u32 = 7;
const TYPEDEF: u32 = 8;
const CONST: u32 = 10;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const VOID: u32 = 0;

impl Writer {
    fn kernel() -> Self {
        Self {
            types: Vec::new(),
            strings: vec![0],
            last: 0,
            first_string: 0,
        }
    }

    fn module(kernel: &Self) -> Self {
        Self {
            types: Vec::new(),
            strings: Vec::new(),
            last: kernel.last,
            first_string: kernel.strings.len() as u32,
        }
    }

    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let offset = self.first_string + self.strings.len() as u32;
        self.strings.extend(text.bytes().chain([0]));
        offset
    }

    /// Adds a type; `of` is its size or the type it refers to. Returns its id.
    fn add(&mut self, kind: u32, name: &str, of: u32, entries: &[&[u32]]) -> u32 {
        let name = self.string(name);
        self.types
            .extend([name, kind << 24 | entries.len() as u32, of]);
        self.types.extend(entries.concat());
        self.last += 1;
        self.last
    }

    /// Adds a struct or union of `(name, type, byte offset)`.
    fn composite(&mut self, kind: u32, name: &str, members: &[(&str, u32, u32)]) -> u32 {
        let members: Vec<[u32; 3]> = members
            .iter()
            .map(|&(name, of, offset)| [self.string(name), of, offset * 8])
            .collect();
        let members: Vec<&[u32]> = members.iter().map(|member| &member[..]).collect();
        self.add(kind, name, 64, &members)
    }

    /// Adds `typedef void (*btf_trace_EVENT)(void *, ...)`.
    fn tracepoint(&mut self, event: &str, arguments: &[u32]) {
        let data = self.add(PTR, "", VOID, &[]);
        let parameters: Vec<[u32; 2]> = [data]
            .iter()
            .chain(arguments)
            .map(|&argument| [0, argument])
            .collect();
        let parameters: Vec<&[u32]> = parameters.iter().map(|one| &one[..]).collect();
        let prototype = self.add(FUNC_PROTO, "", VOID, &parameters);
        let pointer = self.add(PTR, "", prototype, &[]);
        self.add(TYPEDEF, &format!("btf_trace_{event}"), pointer, &[]);
    }

    /// Adds a function without arguments.
    fn function(&mut self, name: &str) {
        let prototype = self.add(FUNC_PROTO, "", VOID, &[]);
        self.add(FUNC, name, prototype, &[]);
    }

    fn bytes(&self) -> Vec<u8> {
        let types = self.types.len() as u32 * 4;
        // Magic 0xeb9f, version 1, no flags; the header's length; offset and length of both sections.
        let header = [0x0001_eb9f, 24, 0, types, types, self.strings.len() as u32];
        let words = header.iter().chain(&self.types);
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(&self.strings);
        bytes
    }
}

/// A kernel of a few types, shaped like those that matter.
fn small_kernel() -> Writer {
    let mut btf = Writer::kernel();
    let iter = btf.composite(
        STRUCT,
        "bvec_iter",
        &[("bi_sector", VOID, 0), ("bi_size", VOID, 8)],
    );
    let alias = btf.add(TYPEDEF, "iter_t", iter, &[]);
    let qualified = btf.add(CONST, "", alias, &[]);
    let inner = btf.composite(STRUCT, "", &[("pad", VOID, 0), ("bi_private", VOID, 8)]);
    let either = btf.composite(UNION, "", &[("other", VOID, 0), ("", inner, 0)]);
    // A forward declaration of the same name must not hide the struct.
    btf.add(FWD, "bio", 0, &[]);
    let bio = btf.composite(
        STRUCT,
        "bio",
        &[
            ("bi_opf", VOID, 16),
            ("bi_iter", qualified, 32),
            ("", either, 48),
        ],
    );
    btf.composite(STRUCT, "task_struct", &[("state", VOID, 24)]);
    let fua = btf.string("__REQ_FUA");
    btf.add(ENUM, "req_flag_bits", 4, &[&[fua, 17]]);

    let to_bio = btf.add(PTR, "", bio, &[]);
    let queue = btf.composite(STRUCT, "request_queue", &[("disk", VOID, 0)]);
    let to_queue = btf.add(PTR, "", queue, &[]);
    let to_pointer = btf.add(PTR, "", to_bio, &[]);
    // As on 5.10, where the queue comes first.
    btf.tracepoint("block_bio_queue", &[to_queue, to_bio]);
    btf.tracepoint("block_bio_remap", &[to_pointer]);
    btf.tracepoint("sched_switch", &[VOID, VOID, VOID]);
    btf.function("submit_bio");
    btf
}

fn parsed(kernel: &Writer) -> KernelBtf {
    KernelBtf {
        all: BtfCollection::from_bytes("vmlinux", &kernel.bytes()).unwrap(),
        notes: Vec::new(),
    }
}

#[test]
fn members_are_found_by_path_through_anonymous_unions_and_by_older_names() {
    let offsets = parsed(&small_kernel()).offsets();
    assert_eq!(offsets.get("BIO_OPF"), Some(16));
    assert_eq!(offsets.get("BIO_SIZE"), Some(40), "bi_iter.bi_size");
    assert_eq!(
        offsets.get("BIO_PRIVATE"),
        Some(56),
        "in an anonymous union"
    );
    assert_eq!(offsets.get("TASK_STATE"), Some(24), "__state is absent");
    assert_eq!(offsets.get("BIO_BDEV"), None);
    assert_eq!(offsets.get("MOUNT_SUPER"), None, "no such struct");
}

#[test]
fn enumerators_and_tracepoint_arguments_are_found() {
    let offsets = parsed(&small_kernel()).offsets();
    assert_eq!(offsets.get("REQ_FUA_BIT"), Some(17));
    assert_eq!(offsets.get("REQ_PREFLUSH_BIT"), None);
    assert_eq!(offsets.get("BIO_QUEUE_BIO"), Some(1));
    assert_eq!(offsets.get("BIO_REMAP_BIO"), None, "a pointer to a pointer");
    assert_eq!(offsets.get("SCHED_SWITCH_ARGS"), Some(3));
    assert_eq!(offsets.get("RQ_ISSUE_RQ"), None, "no such tracepoint");
}

#[test]
fn what_is_absent_is_told_to_the_kernel_side_as_absent() {
    let offsets = parsed(&small_kernel()).offsets();
    assert_eq!(offsets.values.len(), OFFSETS.len());
    let of = |global| offsets.globals().find(|(name, _)| *name == global);
    assert_eq!(of("BIO_BDEV"), Some(("BIO_BDEV", ABSENT)));
    assert_eq!(of("BIO_OPF"), Some(("BIO_OPF", 16)));
}

#[test]
fn functions_are_told_from_types_and_modules_from_the_kernel() {
    let kernel = small_kernel();
    let mut btf = parsed(&kernel);
    assert_eq!(btf.home_of_function("submit_bio"), Some("vmlinux"));
    assert_eq!(btf.home_of_function("bio"), None);

    let mut module = Writer::module(&kernel);
    module.composite(STRUCT, "xlog", &[("l_mp", VOID, 0), ("l_cilp", VOID, 16)]);
    module.function("xfs_file_fsync");
    btf.all
        .add_split_btf_from_bytes("xfs", &module.bytes())
        .unwrap();
    assert_eq!(btf.offsets().get("LOG_CIL"), Some(16));
    assert_eq!(btf.home_of_function("xfs_file_fsync"), Some("xfs"));
    // Modules number on from where the kernel ends.
    let id = btf.function_id("xfs", "xfs_file_fsync").unwrap();
    let last = btf.all.resolve_ids_by_name("submit_bio").unwrap()[0].1;
    assert!(id > last, "{id} is not beyond {last}");
    assert_eq!(btf.function_id("xfs", "submit_bio"), None);
    assert_eq!(btf.function_id("loop", "xfs_file_fsync"), None);
}

#[test]
fn a_kernel_without_btf_is_told_what_it_needs() {
    let empty = tempfile::tempdir().unwrap();
    let error = KernelBtf::open_in(empty.path(), None)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("CONFIG_DEBUG_INFO_BTF=y"), "{error}");

    std::fs::write(empty.path().join("vmlinux"), b"not BTF").unwrap();
    let error = KernelBtf::open_in(empty.path(), None)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("cannot parse"), "{error}");
}

#[test]
fn a_module_with_damaged_btf_is_left_out_and_noted() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("vmlinux"), small_kernel().bytes()).unwrap();
    std::fs::write(directory.path().join("xfs"), b"damaged").unwrap();
    let btf = KernelBtf::open_in(directory.path(), None).unwrap();
    assert_eq!(btf.home_of_function("submit_bio"), Some("vmlinux"));
    assert_eq!(btf.notes().len(), 1);
    assert!(btf.notes()[0].contains("/xfs: "), "{:?}", btf.notes());
}

/// A kernel 6.18.44 with XFS built in and 256 CPUs. The offsets in XFS's structs were compared with
/// an independent table of that build; the other rows guard against change.
const LINUX_6_18_44: &[(&str, Option<u32>)] = &[
    ("MOUNT_SUPER", Some(304)),
    ("MOUNT_LOG", Some(368)),
    ("SUPER_DEV", Some(16)),
    ("LOG_MOUNT", Some(0)),
    ("LOG_CIL", Some(16)),
    ("LOG_ICLOG_SIZE", Some(180)),
    ("LOG_CURR_CYCLE", Some(300)),
    ("LOG_CURR_BLOCK", Some(308)),
    ("LOG_TAIL_LSN", Some(320)),
    ("LOG_BLOCKS", Some(204)),
    ("ICLOG_LOG", Some(64)),
    ("ICLOG_OFFSET", Some(76)),
    ("ICLOG_FLAGS", Some(84)),
    ("ICLOG_STATE", Some(80)),
    ("ICLOG_BIO", Some(208)),
    ("CIL_LOG", Some(0)),
    ("CIL_CTX", Some(104)),
    ("CIL_CTX_LOCK", Some(64)),
    ("CIL_PUSH_WORK", None),
    ("CTX_CIL", Some(0)),
    ("CTX_SEQUENCE", Some(8)),
    ("CTX_PUSH_WORK", Some(176)),
    ("TRANS_MOUNT", Some(40)),
    ("XINODE_MOUNT", Some(0)),
    ("ITEM_LOG", Some(40)),
    ("ITEM_MOUNT", None),
    ("BIO_OPF", Some(16)),
    ("BIO_BDEV", Some(8)),
    ("BIO_SIZE", Some(40)),
    ("BIO_PRIVATE", Some(64)),
    ("REQUEST_FLAGS", Some(24)),
    ("REQUEST_QUEUE", Some(0)),
    ("REQUEST_DISK", None),
    ("BIO_QUEUE_BIO", Some(0)),
    ("RQ_ISSUE_RQ", Some(0)),
    ("SCHED_SWITCH_ARGS", Some(4)),
];

#[test]
fn the_running_kernel_has_the_offsets_that_its_build_has() {
    const RELEASE: &str = "6.18.44-fc";
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    if !release.starts_with(RELEASE) {
        eprintln!("skipped: the expected values are of {RELEASE}, this kernel is {release}");
        return;
    }
    let btf = match KernelBtf::open() {
        Ok(btf) => btf,
        Err(error) => {
            eprintln!("skipped: {error:#}");
            return;
        }
    };
    let offsets = btf.offsets();
    for (global, expected) in LINUX_6_18_44 {
        assert_eq!(offsets.get(global), *expected, "{global}");
    }
    assert_eq!(btf.home_of_function("xfs_file_fsync"), Some("vmlinux"));
    // Inlined in every kernel from 5.10 to 7.3.
    assert_eq!(btf.home_of_function("xlog_cil_insert_items"), None);
}
