//! Rows on locks.

use super::{Cells, Names, Row, dev, number, text};
use crate::tick::{Blocked, LockCaller, NextLock, Thread};
use cil_trace_common::lock::Lock;
use rusqlite::types::Value;

impl Cells<'_> {
    /// A thread, whose three cells are NULL if there is none.
    fn thread(&mut self) -> Option<Option<Thread>> {
        let (pid, tid, comm) = (self.get()?, self.get()?, self.get()?);
        let thread = |((pid, tid), comm)| Thread { pid, tid, comm };
        Some(Option::zip(Option::zip(pid, tid), comm).map(thread))
    }
}

fn thread(thread: Option<&Thread>) -> [Value; 3] {
    [
        thread.map(|thread| thread.pid).into(),
        thread.map(|thread| thread.tid).into(),
        thread.map(|thread| thread.comm.clone()).into(),
    ]
}

impl Row for LockCaller {
    const TABLE: &'static str = "lock_callers";
    const COLUMNS: &'static [&'static str] = &["lock", "device", "function", "count"];

    fn encode(&self, names: &Names) -> Vec<Value> {
        vec![
            text(self.lock.name()),
            dev(self.dev, names),
            text(&self.function),
            number(self.count),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            lock: cells.variant(Lock::from_name)?,
            dev: cells.dev()?,
            function: cells.get()?,
            count: cells.u64()?,
        })
    }
}

impl Row for Blocked {
    const TABLE: &'static str = "blocked";
    const COLUMNS: &'static [&'static str] = &[
        "lock",
        "device",
        "start_ns",
        "wait_ns",
        "waiter_pid",
        "waiter_tid",
        "waiter_comm",
        "waiter_stack",
        "holder_pid",
        "holder_tid",
        "holder_comm",
        "holder_is_reader",
        "holder_stack",
        "holder_slept_ns",
        "next_lock",
        "next_device",
        "next_function",
        "next_wait_ns",
        "next_pid",
        "next_tid",
        "next_comm",
    ];

    fn encode(&self, names: &Names) -> Vec<Value> {
        let next = self.next.as_ref();
        let mut cells = vec![
            text(self.lock.name()),
            dev(self.dev, names),
            number(self.start_ns),
            number(self.wait_ns),
        ];
        cells.extend(thread(Some(&self.waiter)));
        cells.push(self.waiter_stack.into());
        cells.extend(thread(self.holder.as_ref()));
        cells.extend([
            self.holder_is_reader.into(),
            self.holder_stack.into(),
            number(self.holder_slept_ns),
            next.map(|next| next.lock.name().to_owned()).into(),
            next.map_or(Value::Null, |next| dev(next.dev, names)),
            next.map(|next| next.function.clone()).into(),
            next.map_or(Value::Null, |next| number(next.wait_ns)),
        ]);
        cells.extend(thread(next.and_then(|next| next.holder.as_ref())));
        cells
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            lock: cells.variant(Lock::from_name)?,
            dev: cells.dev()?,
            start_ns: cells.u64()?,
            wait_ns: cells.u64()?,
            waiter: cells.thread()??,
            waiter_stack: cells.get()?,
            holder: cells.thread()?,
            holder_is_reader: cells.get()?,
            holder_stack: cells.get()?,
            holder_slept_ns: cells.u64()?,
            next: next_lock(cells)?,
        })
    }
}

/// The lock that a holder waited for; the inner `None` if it waited for none.
fn next_lock(cells: &mut Cells<'_>) -> Option<Option<NextLock>> {
    let lock: Option<String> = cells.get()?;
    let dev = cells.dev()?;
    let (function, wait_ns) = (cells.get()?, cells.optional_u64()?);
    let holder = cells.thread()?;
    let Some(lock) = lock else {
        return Some(None);
    };
    Some(Some(NextLock {
        lock: Lock::from_name(&lock)?,
        dev,
        function: Option::unwrap_or_default(function),
        wait_ns: wait_ns.unwrap_or(0),
        holder,
    }))
}
