//! What the kernel printed, and the reports of its own checkers in it.

use serde::{Deserialize, Serialize};

/// Text that is kept at most; the end is what matters.
const KEPT_MAX: usize = 1 << 20;
/// Lines of one report at most.
const SPLAT_LINES_MAX: usize = 80;

/// Everything printed so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Console {
    text: Vec<u8>,
    /// Where the test began.
    mark: usize,
    /// How much of the text was searched for last words, and what was found.
    searched: usize,
    tells_death: bool,
}

/// Which checker spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SplatKind {
    Panic,
    Oops,
    Bug,
    Sanitizer,
    Lockdep,
    Warning,
    HungTask,
    Stall,
}

/// A report of the kernel about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splat {
    pub kind: SplatKind,
    /// Its first line, without time stamps and addresses.
    pub title: String,
    /// Its lines without time stamps.
    pub lines: Vec<String>,
}

/// How reports begin. Earlier ones win, since an oops often begins with `BUG:`.
const BEGINNINGS: [(&str, SplatKind); 25] = [
    ("Kernel panic - not syncing", SplatKind::Panic),
    ("BUG: KASAN", SplatKind::Sanitizer),
    ("BUG: KCSAN", SplatKind::Sanitizer),
    ("BUG: KFENCE", SplatKind::Sanitizer),
    ("BUG: KMSAN", SplatKind::Sanitizer),
    ("UBSAN:", SplatKind::Sanitizer),
    ("BUG: kernel NULL pointer dereference", SplatKind::Oops),
    ("BUG: unable to handle", SplatKind::Oops),
    ("general protection fault", SplatKind::Oops),
    ("divide error", SplatKind::Oops),
    ("invalid opcode", SplatKind::Oops),
    ("stack segment", SplatKind::Oops),
    ("list_add corruption", SplatKind::Bug),
    ("list_del corruption", SplatKind::Bug),
    ("kernel BUG at", SplatKind::Bug),
    ("BUG: ", SplatKind::Bug),
    ("refcount_t: ", SplatKind::Warning),
    ("ODEBUG: ", SplatKind::Warning),
    ("WARNING: possible", SplatKind::Lockdep),
    ("WARNING: inconsistent lock state", SplatKind::Lockdep),
    ("WARNING: suspicious RCU", SplatKind::Lockdep),
    ("WARNING: ", SplatKind::Warning),
    ("INFO: task ", SplatKind::HungTask),
    ("rcu: INFO:", SplatKind::Stall),
    ("watchdog: BUG:", SplatKind::Stall),
];

impl SplatKind {
    /// The rule that findings are reported under.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Panic => "kernel-panic",
            Self::Oops => "kernel-oops",
            Self::Bug => "kernel-bug",
            Self::Sanitizer => "kernel-sanitizer",
            Self::Lockdep => "kernel-lockdep",
            Self::Warning => "kernel-warning",
            Self::HungTask => "kernel-hung-task",
            Self::Stall => "kernel-stall",
        }
    }
}

impl Console {
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        if self.text.len() > 2 * KEPT_MAX {
            let cut = self.text.len() - KEPT_MAX;
            self.text.drain(..cut);
            self.mark = self.mark.saturating_sub(cut);
            self.searched = 0;
        }
    }

    pub(super) fn agent_line(&mut self, text: &str) {
        self.append(format!("agent: {}\n", text.trim_end()).as_bytes());
    }

    /// From here on it is the test's.
    pub(super) fn begin_test(&mut self) {
        self.mark = self.text.len();
        self.searched = self.mark;
        self.tells_death = false;
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).replace('\r', "")
    }

    /// What was printed since the test began.
    pub fn test_text(&self) -> String {
        String::from_utf8_lossy(&self.text[self.mark..]).replace('\r', "")
    }

    pub fn has_test_output(&self) -> bool {
        self.text.len() > self.mark
    }

    /// True once the kernel has said that it or the current thread does not go on.
    pub(super) fn tells_death(&mut self) -> bool {
        if self.searched != self.text.len() {
            self.searched = self.text.len();
            self.tells_death = self.has_last_words();
        }
        self.tells_death
    }

    /// Whether the kernel has given up since the test began.
    pub(super) fn tells_panic(&self) -> bool {
        self.test_text().contains("Kernel panic - not syncing")
    }

    fn has_last_words(&self) -> bool {
        // Half a line depends on where a slice ended.
        let text = &self.text[self.mark..];
        let lines = text.iter().rposition(|byte| *byte == b'\n');
        let text = String::from_utf8_lossy(&text[..lines.map_or(0, |end| end + 1)]);
        if text.contains("Kernel panic - not syncing") {
            return text.contains("---[ end Kernel panic") || text.contains("Rebooting");
        }
        // An oops kills the thread after its last line; a warning ends in the same line, but nobody dies of it.
        let deadly = ["Oops: ", "kernel BUG at", "general protection fault"];
        deadly.iter().any(|word| text.contains(word)) && text.contains("---[ end trace")
    }

    /// The kernel's reports about itself since the test began.
    pub fn splats(&self) -> Vec<Splat> {
        splats(&self.test_text())
    }

    /// The kernel's reports since it was booted.
    pub fn all_splats(&self) -> Vec<Splat> {
        splats(&self.text())
    }
}

fn splats(text: &str) -> Vec<Splat> {
    let mut found: Vec<Splat> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let line = without_time(line);
        let beginning = BEGINNINGS.iter().find(|(words, _)| line.starts_with(words));
        match (beginning, found.last_mut()) {
            // A report has several such lines: what was noticed, where, and which exception told it.
            (Some(_), Some(last)) if open => push_line(last, line),
            // A panic that follows from an oops belongs to it.
            (Some((_, SplatKind::Panic)), Some(last)) if last.kind != SplatKind::Warning => {
                push_line(last, line);
            }
            (Some((_, kind)), _) => {
                found.push(Splat {
                    kind: *kind,
                    title: normalise(line),
                    lines: vec![line.to_owned()],
                });
                open = true;
            }
            (None, Some(last)) if open => push_line(last, line),
            (None, _) => {}
        }
        if line.contains("---[ end ") {
            open = false;
        }
    }
    found
}

fn push_line(splat: &mut Splat, line: &str) {
    if splat.lines.len() < SPLAT_LINES_MAX {
        splat.lines.push(line.to_owned());
    }
}

/// A line without `[    1.234567] `.
fn without_time(line: &str) -> &str {
    let Some(rest) = line.strip_prefix('[') else {
        return line;
    };
    match rest.split_once("] ") {
        Some((time, rest)) if time.trim().parse::<f64>().is_ok() => rest,
        _ => line,
    }
}

/// Addresses and numbers of threads differ from run to run and do not name a bug.
fn normalise(line: &str) -> String {
    line.split(' ')
        .filter(|word| !word.starts_with("PID:"))
        .map(|word| {
            let digits = word.trim_end_matches([',', ':']).trim_start_matches("0x");
            let is_address = digits.len() >= 12 && digits.bytes().all(|c| c.is_ascii_hexdigit());
            if is_address { "ADDRESS" } else { word }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

impl Splat {
    /// The function that the report is about: of the line `RIP: 0010:function+0x12/0x34`.
    pub fn function(&self) -> Option<&str> {
        let line = self.lines.iter().find_map(|line| {
            line.split_once("RIP: ")
                .and_then(|(_, rest)| rest.split_once(':'))
        })?;
        line.1
            .split(['+', ' '])
            .next()
            .filter(|name| !name.is_empty() && !name.starts_with("0x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OOPS: &str = "\
[    1.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008\r
[    1.000001] #PF: supervisor read access in kernel mode\r
[    1.000002] Oops: 0000 [#1] PREEMPT SMP NOPTI\r
[    1.000003] RIP: 0010:dev_read+0x12/0x80 [mine]\r
[    1.000004] ---[ end trace 0000000000000000 ]---\r
[    1.000005] Kernel panic - not syncing: Fatal exception\r
";

    fn console(text: &str) -> Console {
        let mut console = Console::default();
        console.append(b"[    0.1] WARNING: before the test\n");
        console.begin_test();
        console.append(text.as_bytes());
        console
    }

    #[test]
    fn an_oops_is_one_report_with_its_panic() {
        let mut console = console(OOPS);
        assert!(!console.tells_death(), "the panic is not through yet");
        let splats = console.splats();
        assert_eq!(splats.len(), 1);
        assert_eq!(splats[0].kind, SplatKind::Oops);
        assert_eq!(
            splats[0].title,
            "BUG: kernel NULL pointer dereference, address: ADDRESS"
        );
        assert_eq!(splats[0].function(), Some("dev_read"));
        assert_eq!(splats[0].lines.len(), 6);
    }

    #[test]
    fn warnings_do_not_end_a_run() {
        let mut console = console(
            "[ 2.0] ------------[ cut here ]------------\n[ 2.0] WARNING: CPU: 1 PID: 77 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110\n[ 2.0] RIP: 0010:refcount_warn_saturate+0xba/0x110\n[ 2.0] ---[ end trace 0000000000000000 ]---\nordinary line\n",
        );
        assert!(!console.tells_death());
        let splats = console.splats();
        assert_eq!(splats.len(), 1);
        assert_eq!(splats[0].kind, SplatKind::Warning);
        assert_eq!(splats[0].lines.len(), 3);
    }

    #[test]
    fn ordinary_output_is_no_report() {
        assert_eq!(
            console("[ 1.0] loop: module loaded\nBUGS: none\n").splats(),
            []
        );
    }
}
