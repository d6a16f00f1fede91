//! A shell in a terminal of tmux, gone when dropped.

use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for something to be seen, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// The prompt of the shell, which nothing else prints; the shell counts its commands in it.
const PROMPT: &str = r"ready\#>";

/// The number of the prompt that the screen ends with.
fn prompt(screen: &str) -> Option<u32> {
    let last = screen.trim_end().rsplit("ready").next()?;
    last.strip_suffix('>')?.parse().ok()
}

/// A terminal of its own server.
pub struct Tmux {
    directory: TempDir,
}

impl Tmux {
    /// A shell in 80 columns and 24 rows, in an empty directory.
    pub fn new() -> Self {
        let tmux = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let shell = format!("env PS1='{PROMPT} ' bash --norc --noprofile -i");
        let directory = tmux.directory().to_str().unwrap();
        let start = ["new-session", "-d", "-x", "80", "-y", "24", "-c", directory];
        tmux.run(&[&start[..], &[&shell]].concat());
        tmux.wait("a prompt", |screen| prompt(screen).is_some());
        tmux
    }

    /// The shell's directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn attempt(&self, arguments: &[&str]) -> Output {
        let socket = self.directory().join("tmux");
        Command::new("tmux")
            .arg("-S")
            .arg(socket)
            .args(["-f", "/dev/null", "-u"])
            .args(arguments)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .env_remove("TMUX")
            .output()
            .unwrap()
    }

    /// A command of tmux, which must succeed.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.attempt(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Presses keys, by tmux's names.
    pub fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types a line.
    pub fn line(&self, line: &str) {
        self.run(&["send-keys", "-l", line]);
        self.keys(&["Enter"]);
    }

    /// Types a line, and waits for the next prompt.
    pub fn command(&self, line: &str) {
        let before = self.wait("prompt", |screen| prompt(screen).is_some());
        self.line(&format!("clear; {line}"));
        self.wait("prompt after a command", |screen| {
            prompt(screen) > prompt(&before)
        });
    }

    /// What is seen.
    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as wanted, and returns it.
    ///
    /// # Panics
    /// It does not become so.
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "no {what}:\n{screen}");
            sleep(POLL);
        }
    }

    /// Whether a program has the screen to itself, and whether the cursor is seen.
    pub fn state(&self) -> (bool, bool) {
        let text = self.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        let mut flags = text.trim().split(' ').map(|flag| flag == "1");
        (flags.next().unwrap(), flags.next().unwrap())
    }

    /// Gives the terminal another size.
    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.run(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Takes the terminal away.
    pub fn close(&self) {
        self.attempt(&["kill-server"]);
    }

    /// A file that the shell's commands write, once it is there.
    pub fn file(&self, name: &str) -> String {
        let path = self.directory().join(name);
        let begun = Instant::now();
        loop {
            match std::fs::read_to_string(&path) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => assert!(begun.elapsed() < PATIENCE, "no {name}"),
            }
            sleep(POLL);
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.close();
    }
}
