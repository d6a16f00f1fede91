//! Programs, and ways to a quantity that are made of them.

/// How a program is attached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Attach {
    /// `BPF_PROG_TYPE_RAW_TRACEPOINT`, built in or in a module.
    RawTracepoint,
    /// `BPF_TRACE_RAW_TP`: members are read directly, so BTF must describe the event.
    BtfTracepoint,
    /// A function's entry by breakpoint or ftrace.
    Kprobe,
    /// Every beginning of a function's code, its own and where it has been inlined, by kprobe; debug
    /// information must tell them. Arguments are not where they are at a function's entry.
    Inlined,
    /// A function's return by trampoline.
    Kretprobe,
    /// A function's entry by BPF trampoline; BTF must describe the function.
    Fentry,
    /// A function's return by BPF trampoline; likewise.
    Fexit,
    /// A clock on each CPU, `BPF_PROG_TYPE_PERF_EVENT`.
    PerfEvent,
    /// What perf itself records, without a program of ours.
    PerfRecords,
}

impl Attach {
    /// Its name in `probes` and in recordings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RawTracepoint => "raw_tracepoint",
            Self::BtfTracepoint => "tp_btf",
            Self::Kprobe | Self::Inlined => "kprobe",
            Self::Kretprobe => "kretprobe",
            Self::Fentry => "fentry",
            Self::Fexit => "fexit",
            Self::PerfEvent => "perf_event",
            Self::PerfRecords => "perf records",
        }
    }

    /// Whether it goes to a function, not to a tracepoint.
    #[must_use]
    pub const fn to_function(self) -> bool {
        matches!(
            self,
            Self::Kprobe | Self::Kretprobe | Self::Fentry | Self::Fexit
        )
    }
}

/// One program of the eBPF object, and where it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its name in the object.
    pub name: &'static str,
    /// How it is attached.
    pub attach: Attach,
    /// The tracepoint or function.
    pub target: &'static str,
    /// Whether it reads the function's arguments, so that a clone of the function, whose arguments
    /// the compiler may have changed, will not do. One that does not is attached to every clone,
    /// and may see a call twice, as a function may call its own `.part`.
    pub arguments: bool,
}

/// One way to measure a quantity: all its programs attach, or the way is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// The programs.
    pub programs: &'static [Program],
    /// If the way only comes close: what it measures, and what that misses.
    pub approximation: Option<&'static str>,
    /// The global of a struct's member of which only some kernels are in need of this way; on the
    /// others nothing is said of it.
    pub only_with: Option<&'static str>,
}

impl Way {
    /// The same on kernels that have this member.
    pub(super) const fn only_with(self, global: &'static str) -> Self {
        Self {
            only_with: Some(global),
            ..self
        }
    }
}
