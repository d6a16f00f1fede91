//! The words for causes.

use crate::model::Model;
use crate::series::Series;
use cil_trace_common::cause::Cause;

/// Beginnings of the names of block-layer functions, which say how a flush was sent, not why.
const PLUMBING: [&str; 10] = [
    "__blk",
    "__submit_bio",
    "__traceiter_",
    "bio_",
    "blk_",
    "blkdev_",
    "dm_",
    "generic_make_request",
    "submit_bio",
    "trace_",
];

/// The cause of a series under its name in reports; for what is not XFS with the filesystem's
/// type, for what nothing explains with the function that did it.
pub(super) fn text(model: &Model, series: &Series) -> String {
    match series.cause() {
        Some(Cause::ForeignFs) => {
            let device = model.device(series.dev);
            let filesystem = device.and_then(|device| device.filesystem.as_deref());
            format!(
                "{}:{}",
                Cause::ForeignFs.name(),
                filesystem.unwrap_or("unknown")
            )
        }
        Some(Cause::Other) | None => {
            let frames = series.stack.and_then(|id| model.stacks().frames(id));
            match frames.as_deref().and_then(culprit) {
                Some(function) => format!("{}:{function}", Cause::Other.name()),
                None => Cause::Other.name().to_owned(),
            }
        }
        Some(cause) => cause.name().to_owned(),
    }
}

/// The innermost function that is not plumbing; clones made by the compiler (`.isra.0`,
/// `.constprop.0`) go by their function's name.
fn culprit<'a>(frames: &[&'a str]) -> Option<&'a str> {
    let names = frames
        .iter()
        .map(|frame| frame.split('.').next().unwrap_or(frame));
    names
        .filter(|name| !is_address(name))
        .find(|name| !PLUMBING.iter().any(|prefix| name.starts_with(prefix)))
}

/// Whether a frame could not be resolved.
fn is_address(frame: &str) -> bool {
    let digits = frame.strip_prefix("0x").unwrap_or(frame);
    digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::culprit;

    fn of(frames: &[&str]) -> Option<String> {
        culprit(frames).map(str::to_owned)
    }

    #[test]
    fn the_first_frame_outside_the_block_layer() {
        let frames = [
            "submit_bio_noacct",
            "blkdev_issue_flush",
            "xfs_free_buftarg",
            "kthread",
        ];
        assert_eq!(of(&frames).as_deref(), Some("xfs_free_buftarg"));
    }

    #[test]
    fn clones_are_their_function_and_addresses_are_nobody() {
        let frames = [
            "0xffffffffc0123456",
            "ffffffffc0123456",
            "xfs_mystery.isra.0",
        ];
        assert_eq!(of(&frames).as_deref(), Some("xfs_mystery"));
        assert_eq!(of(&["0xffffffffc0123456", "submit_bio"]), None);
        assert_eq!(of(&[]), None);
    }
}
