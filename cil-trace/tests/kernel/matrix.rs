//! What every kernel must show, and what only some do.
