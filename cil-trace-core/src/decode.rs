//! Bytes of the ring buffer and of maps, decoded. Total: bad bytes are an error, never a panic.

use bytes::Buf;
use cil_trace_common::event::{ARGS, EventKind};

use crate::device::Dev;
use crate::tick::SampledEvent;

/// Bytes that are no record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The record is of another length.
    #[error("a ring-buffer record has {0} bytes instead of {expected}", expected = EVENT_BYTES)]
    Length(usize),
    /// The record is of an unknown kind.
    #[error("a ring-buffer record is of unknown kind {0}")]
    Kind(u16),
}

/// Size of a [`cil_trace_common::event::Event`].
const EVENT_BYTES: usize = size_of::<cil_trace_common::event::Event>();

/// Decodes one ring-buffer record; its weight is 1.
///
/// # Errors
///
/// If the bytes are not those of a record of a known kind.
pub fn event(mut bytes: &[u8]) -> Result<SampledEvent, DecodeError> {
    if bytes.len() != EVENT_BYTES {
        return Err(DecodeError::Length(bytes.len()));
    }
    let kind = bytes.get_u16_ne();
    let kind = EventKind::from_u16(kind).ok_or(DecodeError::Kind(kind))?;
    let label = bytes.get_u16_ne();
    let dev = Dev(bytes.get_u32_ne());
    let via = Dev(bytes.get_u32_ne());
    let tid = bytes.get_u32_ne();
    let pid = bytes.get_u32_ne();
    let workload = bytes.get_u32_ne() != 0;
    let comm = text(&bytes.copy_to_bytes(16));
    let start_ns = bytes.get_u64_ne();
    let duration_ns = bytes.get_u64_ne();
    let args: [u64; ARGS] = std::array::from_fn(|_| bytes.get_u64_ne());
    let args = args.iter().copied().take(kind.args().len()).collect();
    Ok(SampledEvent {
        kind,
        label,
        dev,
        via,
        pid,
        tid,
        comm,
        workload,
        start_ns,
        duration_ns,
        args,
        weight: 1.0,
    })
}

/// A command name: up to the first NUL, what is not UTF-8 replaced.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = event(&bytes);
        }

        #[test]
        fn a_record_of_a_known_kind_decodes(mut bytes in proptest::collection::vec(any::<u8>(), EVENT_BYTES)) {
            bytes[..2].copy_from_slice(&(EventKind::Iclog as u16).to_ne_bytes());
            let event = event(&bytes).expect("right length and kind");
            prop_assert_eq!(event.kind, EventKind::Iclog);
            prop_assert_eq!(event.args.len(), EventKind::Iclog.args().len());
        }
    }

    #[test]
    fn fields_come_from_their_places() {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(EventKind::Push as u16).to_ne_bytes());
        bytes.extend_from_slice(&19u16.to_ne_bytes());
        for word in [7u32 << 20 | 2, 0, 11, 12, 1] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(b"dbench\0\0\0\0\0\0\0\0\0\0");
        for word in 100u64..108 {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        let event = event(&bytes).expect("a record");
        assert_eq!(event.dev, Dev::new(7, 2));
        assert_eq!(
            (event.label, event.tid, event.pid, event.workload),
            (19, 11, 12, true)
        );
        assert_eq!(event.comm, "dbench");
        assert_eq!((event.start_ns, event.duration_ns), (100, 101));
        assert_eq!(event.args, [102, 103, 104, 105, 106, 107]);
    }
}
