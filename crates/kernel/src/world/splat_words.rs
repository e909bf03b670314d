//! Words of the kernel's reports: what names a bug in them, and what differs from run to run.

/// Hexadecimal digits from which on a number is an address.
const ADDRESS_DIGITS: usize = 12;

/// Functions that report, check, allocate or lock for others: how their names begin.
const REPORTERS: [&str; 62] = [
    "dump_stack",
    "__dump_stack",
    "show_stack",
    "print_",
    "report_",
    "__warn",
    "warn_",
    "panic",
    "die",
    "oops_",
    "exc_",
    "asm_exc_",
    "handle_bug",
    "kasan_",
    "__kasan_",
    "__asan_",
    "check_memory_region",
    "end_report",
    "start_report",
    "kcsan_",
    "__tsan_",
    "kfence_",
    "__kfence_",
    "kmsan_",
    "ubsan_",
    "__ubsan_",
    "slab_",
    "__slab_",
    "___slab_",
    "object_err",
    "check_",
    "alloc_debug_processing",
    "free_debug_processing",
    "alloc_consistency_checks",
    "free_consistency_checks",
    "free_to_partial_list",
    "alloc_single_from_partial",
    "get_partial",
    "init_object",
    "setup_object",
    "validate_",
    "on_freelist",
    "kmem_cache_",
    "__kmem_cache_",
    "kmalloc",
    "__kmalloc",
    "__do_kmalloc",
    "kfree",
    "__kfree",
    "kvfree",
    "kzalloc",
    "lock_acquire",
    "__lock_acquire",
    "lockdep_",
    "mark_lock",
    "__might_",
    "__schedule",
    "schedule",
    "mutex_",
    "__mutex_",
    "_raw_",
    "__list_",
];

/// A line without `[    1.234567] `.
pub(super) fn without_time(line: &str) -> &str {
    let Some(rest) = line.strip_prefix('[') else {
        return line;
    };
    match rest.split_once("] ") {
        Some((time, rest)) if time.trim().parse::<f64>().is_ok() => rest,
        _ => line,
    }
}

/// The function of `function+0x12/0x34 [module]`; none for what is no line of a stack, or a guess (`? function`).
pub(super) fn frame_function(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once("+0x")?;
    let is_offset = rest.split(' ').next()?.contains("/0x");
    let is_name = !name.is_empty() && !name.contains([' ', ':']);
    (is_offset && is_name).then_some(name)
}

/// Whether a function is on a stack only because it reports, allocates or locks.
pub(super) fn is_reporter(function: &str) -> bool {
    REPORTERS.iter().any(|begin| function.starts_with(begin))
}

/// A headline without addresses, processors and numbers of threads: they differ from run to run and do not name a bug.
pub(super) fn normalise(line: &str) -> String {
    let mut words = line.split(' ').peekable();
    let mut kept: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        if matches!(word, "CPU:" | "PID:") {
            // The number behind it goes, too.
            words.next_if(|word| word.bytes().all(|c| c.is_ascii_digit()));
        } else if !(word.starts_with("@offset=") || word.starts_with("pfn:")) {
            kept.push(without_number(&without_addresses(word)));
        }
    }
    kept.join(" ")
}

/// `name/77/0x00000002` and `name:77`, as threads are called, without their numbers.
fn without_number(word: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let parts: Vec<&str> = word.split('/').collect();
    if let [name, number, count] = parts.as_slice()
        && is_number(number)
        && count.starts_with("0x")
    {
        return (*name).to_owned();
    }
    let bare = word.trim_end_matches(']');
    match bare.rsplit_once(':') {
        // `lib/refcount.c:28` is a place and stays.
        Some((name, number)) if is_number(number) && !name.contains('.') && !name.is_empty() => {
            format!("{name}{}", &word[bare.len()..])
        }
        _ => word.to_owned(),
    }
}

/// A word with `ADDRESS` for each long hexadecimal number.
fn without_addresses(word: &str) -> String {
    let mut text = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.strip_prefix("0x").unwrap_or(rest);
        let is_digit = |c: char| c.is_ascii_hexdigit();
        let end = digits.find(|c| !is_digit(c)).unwrap_or(digits.len());
        let taken = if end >= ADDRESS_DIGITS {
            text.push_str("ADDRESS");
            rest.len() - digits.len() + end
        } else {
            // To the end of what looks like a word or a number, so that its tail is not taken for one.
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let taken = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let taken = taken.max(rest.chars().next().map_or(1, char::len_utf8));
            text.push_str(&rest[..taken]);
            taken
        };
        rest = &rest[taken..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headlines_lose_what_differs_from_run_to_run() {
        let cases = [
            (
                "BUG: kernel NULL pointer dereference, address: 0000000000000008",
                "BUG: kernel NULL pointer dereference, address: ADDRESS",
            ),
            (
                "WARNING: CPU: 1 PID: 77 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110",
                "WARNING: at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110",
            ),
            (
                "BUG: scheduling while atomic: test/77/0x00000002",
                "BUG: scheduling while atomic: test",
            ),
            (
                "INFO: task kworker/0:1:77 blocked for more than 120 seconds.",
                "INFO: task kworker/0:1 blocked for more than 120 seconds.",
            ),
            (
                "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [test:77]",
                "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [test]",
            ),
            (
                "BUG kmalloc-128: Padding overwritten. 0xffff888003f6b200-0xffff888003f6b207 @offset=512",
                "BUG kmalloc-128: Padding overwritten. ADDRESS-ADDRESS",
            ),
            (
                "Attempt to free object(0xffff888003f6b200) outside of slab",
                "Attempt to free object(ADDRESS) outside of slab",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(normalise(line), expected);
        }
    }

    #[test]
    fn lines_of_stacks_are_known() {
        assert_eq!(
            frame_function("dev_read+0x12/0x80 [mine]"),
            Some("dev_read")
        );
        assert_eq!(frame_function("? dev_read+0x12/0x80"), None);
        assert_eq!(frame_function("RIP: 0010:dev_read+0x12/0x80"), None);
        assert_eq!(frame_function("CR2: 0000+0x"), None);
    }
}
