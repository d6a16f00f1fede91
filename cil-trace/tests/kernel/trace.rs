//! The text of a trace buffer, as events with the stacks that triggers added to them.
//!
//! Knows ftrace's layout, and nothing of XFS.

use std::collections::HashMap;

/// One event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event<'a> {
    /// Its task's id.
    pub pid: u32,
    /// When, in the instance's clock; ftrace prints microseconds, rounded.
    pub t_ns: u64,
    /// Its name.
    pub name: &'a str,
    /// What it says.
    pub text: &'a str,
    /// The kernel stack, innermost first; empty without a `stacktrace` trigger.
    pub stack: Vec<&'a str>,
}

impl<'a> Event<'a> {
    /// The word after ` key ` in the text.
    pub fn field(&self, key: &str) -> Option<&'a str> {
        let mut words = self.text.split(' ');
        words.find(|word| *word == key)?;
        words.next()
    }

    /// The function of the `caller` field, without offset and size.
    pub fn caller(&self) -> Option<&'a str> {
        self.field("caller")?.split('+').next()
    }

    /// Whether `function` is on the stack.
    pub fn under(&self, function: &str) -> bool {
        self.stack.contains(&function)
    }
}

/// Reads what `trace` of a tracefs instance holds.
///
/// # Panics
/// On a line that is no event, stack frame or comment, and on a stack without an event.
pub fn parse(text: &str) -> Vec<Event<'_>> {
    let mut events: Vec<Event<'_>> = Vec::new();
    // Events of the other CPU may stand between an event and its stack.
    let mut last_of_cpu: HashMap<&str, usize> = HashMap::new();
    let mut stack_of = None;
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(frame) = line.strip_prefix(" => ") {
            let event: usize = stack_of.unwrap_or_else(|| panic!("no event has the frame {line}"));
            events[event].stack.push(frame);
            continue;
        }
        let (cpu, event) = parse_event(line).unwrap_or_else(|| panic!("not a trace line: {line}"));
        if event.name == "<stack trace>" {
            stack_of = last_of_cpu.get(cpu).copied();
            continue;
        }
        // An interrupt may come between an event and its stack, and has no stack itself.
        if !event.name.starts_with("block_rq_") {
            last_of_cpu.insert(cpu, events.len());
        }
        events.push(event);
    }
    events
}

/// `comm-pid [cpu] flags seconds.micros: name: text`; comm may hold blanks and colons.
fn parse_event(line: &str) -> Option<(&str, Event<'_>)> {
    let (before, after) = line.split_once(" [")?;
    let pid = before.trim().rsplit_once('-')?.1.parse().ok()?;
    let (cpu, after) = after.split_once("] ")?;
    let (flags_and_time, what) = after.split_once(": ")?;
    let (seconds, micros) = flags_and_time.rsplit(' ').next()?.split_once('.')?;
    let t_us = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    let (name, text) = what.split_once(": ").unwrap_or((what.trim(), ""));
    let stack = Vec::new();
    Some((
        cpu,
        Event {
            pid,
            t_ns: t_us * 1000,
            name,
            text,
            stack,
        },
    ))
}

#[test]
fn a_stack_belongs_to_the_event_of_its_own_cpu() {
    let text = "\
# tracer: nop
#
 kworker/1:1H-58      [001] .....  1377.700818: block_bio_queue: 7,1 FWFSM 1048747 + 5 [kworker/1:1H]
           my dd-7    [000] d..2.  1377.700819: xfs_log_force: dev 7:1 lsn 0x19 caller xfs_file_fsync+0x1d2/0x200
 kworker/1:1H-58      [001] ..s..  1377.700820: block_rq_complete: 7,1 WSM () 1048747 + 5 be,0,4 [0]
 kworker/1:1H-58      [001] .....  1377.700821: <stack trace>
 => submit_bio_noacct_nocheck
 => xlog_state_release_iclog
";
    let events = parse(text);
    assert_eq!(events.len(), 3);
    assert_eq!(
        events[0].stack,
        ["submit_bio_noacct_nocheck", "xlog_state_release_iclog"]
    );
    assert_eq!(events[0].t_ns, 1_377_700_818_000);
    let force = &events[1];
    assert_eq!((force.pid, force.name), (7, "xfs_log_force"));
    assert_eq!(force.field("lsn"), Some("0x19"));
    assert_eq!(force.caller(), Some("xfs_file_fsync"));
    assert!(force.stack.is_empty());
}
