//! What the kernel printed, and whether it has said that it does not go on.

use super::splat::{self, Splat};

/// Text that is kept at most; the end is what matters.
const KEPT_MAX: usize = 1 << 20;
/// The line that ends the report of an oops or a warning.
const END_OF_TRACE: &str = "---[ end trace";
/// Words of reports after which the current thread does not go on.
const DEADLY: [&str; 3] = ["Oops: ", "kernel BUG at", "general protection fault"];

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
        tells_oops(&text)
    }

    /// The kernel's reports about itself since the test began.
    pub fn splats(&self) -> Vec<Splat> {
        splat::splats(&self.test_text())
    }

    /// The kernel's reports since it was booted.
    pub fn all_splats(&self) -> Vec<Splat> {
        splat::splats(&self.text())
    }
}

/// Whether an oops was told to its end: it kills the current thread then. A warning ends in the same line, but no
/// thread dies of it.
fn tells_oops(text: &str) -> bool {
    let mut lines = text
        .lines()
        .skip_while(|line| !DEADLY.iter().any(|word| line.contains(word)));
    let mut warnings = 0_u32;
    lines.any(|line| {
        warnings += u32::from(line.contains("WARNING: ") && line.contains("CPU"));
        let is_end = line.contains(END_OF_TRACE);
        let is_warnings = is_end && warnings > 0;
        warnings -= u32::from(is_warnings);
        is_end && !is_warnings
    })
}

#[cfg(test)]
mod tests {
    use super::super::splat::SplatKind;
    use super::*;

    const WARNING: &str = "\
[    1.000000] ------------[ cut here ]------------
[    1.000000] WARNING: CPU: 1 PID: 77 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110
[    1.000000] RIP: 0010:refcount_warn_saturate+0xba/0x110
[    1.000000] ---[ end trace 0000000000000000 ]---
";
    const OOPS: [&str; 6] = [
        "[    1.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008\r\n",
        "[    1.000001] #PF: supervisor read access in kernel mode\r\n",
        "[    1.000002] Oops: 0000 [#1] PREEMPT SMP NOPTI\r\n",
        "[    1.000003] RIP: 0010:dev_read+0x12/0x80 [mine]\r\n",
        "[    1.000004] ---[ end trace 0000000000000000 ]---\r\n",
        "[    1.000005] Kernel panic - not syncing: Fatal exception\r\n",
    ];

    fn console(text: &str) -> Console {
        let mut console = Console::default();
        console.append(b"[    0.1] WARNING: before the test\n");
        console.begin_test();
        console.append(text.as_bytes());
        console
    }

    #[test]
    fn a_test_begins_with_a_clean_sheet() {
        let mut console = console("ordinary line\n");
        assert!(!console.tells_death());
        assert_eq!(console.splats(), []);
        assert_eq!(console.all_splats().len(), 1);
    }

    #[test]
    fn a_panic_after_an_oops_is_waited_for_if_it_is_already_there() {
        let mut console = console(&OOPS.concat());
        assert!(!console.tells_death(), "the panic is not through yet");
        assert_eq!(console.splats().len(), 1);
        console.append(b"---[ end Kernel panic - not syncing: Fatal exception ]---\n");
        assert!(console.tells_death());
    }

    #[test]
    fn warnings_do_not_end_a_run() {
        assert!(!console(WARNING).tells_death());
    }

    /// The end of the warning is not that of the oops.
    #[test]
    fn an_oops_after_a_warning_is_heard_to_its_end() {
        let mut console = console(WARNING);
        for (number, line) in OOPS.iter().enumerate().take(5) {
            console.append(line.as_bytes());
            assert_eq!(console.tells_death(), number == 4, "{line}");
        }
        let splats = console.splats();
        let kinds: Vec<SplatKind> = splats.iter().map(|splat| splat.kind).collect();
        assert_eq!(kinds, [SplatKind::Warning, SplatKind::Oops]);
        assert_eq!(splats[1].lines.len(), 5);
    }

    #[test]
    fn a_warning_inside_of_an_oops_does_not_end_it() {
        let mut console = console(&OOPS[..3].concat());
        console.append(WARNING.as_bytes());
        assert!(!console.tells_death());
        console.append(OOPS[4].as_bytes());
        assert!(console.tells_death());
    }
}
