//! What the eBPF programs and user space agree on, byte for byte.
//!
//! Keys and values of the maps, ring-buffer records, histogram buckets, and the tables of causes,
//! metrics, struct offsets and kernel functions. Nothing here allocates, and nothing here knows how
//! a map is read or a report is written.
#![no_std]

#[cfg(test)]
extern crate std;

/// One enumeration that both sides share: a stable number and a name for each variant.
///
/// The numbers cross the kernel boundary; the names are the words of reports, JSON and metrics.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $value:literal => $text:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum $name { $( $(#[$vmeta])* $variant = $value ),+ }

        impl $name {
            /// Every variant, in the order of its number.
            pub const ALL: &'static [Self] = &[ $( Self::$variant ),+ ];

            /// The variant with this number, if there is one.
            #[must_use]
            pub const fn from_u16(value: u16) -> Option<Self> {
                match value { $( $value => Some(Self::$variant), )+ _ => None }
            }

            /// The word for it in reports, JSON and metric labels.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text ),+ }
            }

            /// The variant with this name, if there is one.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $( $text => Some(Self::$variant), )+ _ => None }
            }
        }
    };
}

pub mod cause;
pub mod event;
pub mod flight;
pub mod function;
pub mod hist;
pub mod hold;
pub mod key;
pub mod lock;
pub mod loss;
pub mod metric;
pub mod offset;
pub mod probe;
pub mod process;
pub mod scope;
pub mod slot;
pub mod stack;

/// Declares that a map key or value may be copied to and from the kernel as bytes.
///
/// Every type named here is `repr(C)`, `Copy`, has no padding and no invalid bit pattern; the
/// assertions in the tests of this crate check the padding.
#[cfg(feature = "user")]
macro_rules! pod {
    ($($ty:ty),+ $(,)?) => {
        $(
            // SAFETY: see above: plain integers, `repr(C)`, without padding.
            unsafe impl aya::Pod for $ty {}
        )+
    };
}
#[cfg(feature = "user")]
pod!(
    event::Event,
    flight::Bio,
    flight::Who,
    function::Range,
    hist::Hist,
    key::Key,
    lock::Blocked,
    lock::Caller,
    lock::Calls,
    lock::LockStack,
    lock::Other,
    lock::ProcessWait,
    process::Process,
    scope::Scope,
    scope::State,
    stack::Stack,
    slot::Slot,
    stack::StackKey,
    stack::StackSum,
);
