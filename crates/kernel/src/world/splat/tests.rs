//! Reports as Linux prints them.

use super::*;

fn kinds(text: &str) -> Vec<SplatKind> {
    splats(text).iter().map(|splat| splat.kind).collect()
}

fn only(text: &str) -> Splat {
    let mut found = splats(text);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

#[test]
fn an_oops_is_one_report_with_its_panic() {
    let splat = only(
        "[    1.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008
[    1.000001] #PF: supervisor read access in kernel mode
[    1.000002] Oops: 0000 [#1] PREEMPT SMP NOPTI
[    1.000003] RIP: 0010:dev_read+0x12/0x80 [mine]
[    1.000004] ---[ end trace 0000000000000000 ]---
[    1.000005] Kernel panic - not syncing: Fatal exception
",
    );
    assert_eq!(splat.kind, SplatKind::Oops);
    assert_eq!(
        splat.title,
        "BUG: kernel NULL pointer dereference, address: ADDRESS"
    );
    assert_eq!(splat.function(), Some("dev_read"));
    assert_eq!(splat.lines.len(), 6);
}

#[test]
fn a_warning_ends_in_its_last_line() {
    let splat = only(
        "[ 2.0] ------------[ cut here ]------------\n[ 2.0] WARNING: CPU: 1 PID: 77 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110\n[ 2.0] RIP: 0010:refcount_warn_saturate+0xba/0x110\n[ 2.0] ---[ end trace 0000000000000000 ]---\nordinary line\n",
    );
    assert_eq!(splat.kind, SplatKind::Warning);
    assert_eq!(splat.lines.len(), 3);
}

#[test]
fn ordinary_output_is_no_report() {
    for line in [
        "loop: module loaded",
        "BUGS: none",
        "BUG reports (see below): to the list",
        "INFO: all is well",
    ] {
        assert_eq!(splats(line), [], "{line}");
    }
}

/// As the source of Linux prints them, with the name of a cache where it has one.
const HEADLINE_KINDS: [(&str, SplatKind); 29] = [
    (
        "BUG kmalloc-128 (Not tainted): Poison overwritten",
        SplatKind::Sanitizer,
    ),
    (
        "BUG kmalloc-128 (Tainted: G    B      OE     ): Object already free",
        SplatKind::Sanitizer,
    ),
    (
        "BUG dentry (Not tainted): Right Redzone overwritten",
        SplatKind::Sanitizer,
    ),
    (
        "BUG kmalloc-8 (Not tainted): Left Redzone overwritten",
        SplatKind::Sanitizer,
    ),
    (
        "BUG task_struct (Not tainted): Freepointer corrupt",
        SplatKind::Sanitizer,
    ),
    (
        "BUG x (Not tainted): Objects remaining in x on __kmem_cache_shutdown()",
        SplatKind::Sanitizer,
    ),
    (
        "BUG: KASAN: slab-use-after-free in f+0x1/0x2",
        SplatKind::Sanitizer,
    ),
    ("BUG: KCSAN: data-race in f / g", SplatKind::Sanitizer),
    (
        "UBSAN: array-index-out-of-bounds in fs/x.c:12:3",
        SplatKind::Sanitizer,
    ),
    (
        "BUG: unable to handle page fault for address: ffffc90000000000",
        SplatKind::Oops,
    ),
    (
        "Oops: general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1]",
        SplatKind::Oops,
    ),
    (
        "list_del corruption. prev->next should be a, but was b",
        SplatKind::Bug,
    ),
    (
        "BUG: scheduling while atomic: test/77/0x00000002",
        SplatKind::Bug,
    ),
    (
        "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580",
        SplatKind::Bug,
    ),
    (
        "BUG: Bad page state in process test  pfn:01234",
        SplatKind::Bug,
    ),
    ("BUG: spinlock bad magic on CPU#1, test/77", SplatKind::Bug),
    (
        "WARNING: possible circular locking dependency detected",
        SplatKind::Lockdep,
    ),
    (
        "WARNING: HARDIRQ-safe -> HARDIRQ-unsafe lock order detected",
        SplatKind::Lockdep,
    ),
    ("WARNING: bad unlock balance detected!", SplatKind::Lockdep),
    ("WARNING: test/77 still has locks held!", SplatKind::Lockdep),
    ("WARNING: suspicious RCU usage", SplatKind::Lockdep),
    ("[ BUG: Invalid wait context ]", SplatKind::Lockdep),
    ("refcount_t: underflow; use-after-free.", SplatKind::Warning),
    (
        "WARNING: CPU: 0 PID: 1 at mm/x.c:1 f+0x1/0x2",
        SplatKind::Warning,
    ),
    (
        "INFO: task test:77 blocked for more than 120 seconds.",
        SplatKind::HungTask,
    ),
    (
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        SplatKind::Stall,
    ),
    (
        "INFO: rcu_sched detected stalls on CPUs/tasks:",
        SplatKind::Stall,
    ),
    (
        "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [test:77]",
        SplatKind::Stall,
    ),
    (
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 0",
        SplatKind::Stall,
    ),
];

#[test]
fn every_checker_has_its_kind() {
    for (line, kind) in HEADLINE_KINDS {
        assert_eq!(kinds(line), [kind], "{line}");
    }
}

#[test]
fn a_report_of_the_allocator_names_the_object_and_who_had_it() {
    let splat = only(
        "[ 3.0] =============================================================================
[ 3.0] BUG kmalloc-128 (Tainted: G           OE     ): Poison overwritten
[ 3.0] -----------------------------------------------------------------------------

[ 3.0] 0xffff888003f6b200-0xffff888003f6b203 @offset=512. First byte 0x0 instead of 0x6b
[ 3.0] Allocated in widget_call+0x30/0x90 [raddle_bugs] age=12 cpu=0 pid=77
[ 3.0]  __kmem_cache_alloc_node+0x1/0x2
[ 3.0]  widget_call+0x30/0x90 [raddle_bugs]
[ 3.0] Freed in kfree+0x10/0x90 age=3 cpu=1 pid=78
[ 3.0]  widget_drop+0x20/0x40 [raddle_bugs]
[ 3.0]  bugs_ioctl+0x20/0x40 [raddle_bugs]
[ 3.0] Call Trace:
[ 3.0]  <TASK>
[ 3.0]  dump_stack_lvl+0x44/0x5c
[ 3.0]  check_bytes_and_report.cold+0x5e/0x8d
[ 3.0]  widget_again+0x44/0x5c [raddle_bugs]
[ 3.0] FIX kmalloc-128: Restoring Poison 0xffff888003f6b200-0xffff888003f6b203=0x6b
ordinary line
",
    );
    assert_eq!(splat.title, "BUG kmalloc-128: Poison overwritten");
    assert_eq!(splat.function(), Some("widget_again"));
    assert_eq!(
        splat.object().as_deref(),
        Some("an object of kmalloc-128, allocated in widget_call, freed in widget_drop")
    );
    assert!(
        splat
            .lines
            .last()
            .is_some_and(|line| line.starts_with("FIX"))
    );
}

#[test]
fn a_report_of_kasan_names_the_object_and_who_had_it() {
    let splat = only(
        "BUG: KASAN: slab-use-after-free in reader+0x44/0x5c
Read of size 4 at addr ffff888003f6b200 by task test/77
Call Trace:
 dump_stack_lvl+0x44/0x5c
 reader+0x44/0x5c
Allocated by task 77:
 kasan_save_stack+0x1/0x2
 __kmalloc+0x1/0x2
 maker+0x1/0x2
Freed by task 78:
 kasan_save_stack+0x1/0x2
 kfree+0x1/0x2
 dropper+0x1/0x2
The buggy address belongs to the object at ffff888003f6b200
 which belongs to the cache kmalloc-128 of size 128
",
    );
    assert_eq!(splat.function(), Some("reader"));
    assert_eq!(
        splat.object().as_deref(),
        Some("an object of kmalloc-128, allocated in maker, freed in dropper")
    );
}

#[test]
fn what_has_no_last_line_does_not_swallow_the_next_report() {
    let lockdep = "WARNING: possible recursive locking detected\n-----\ntest/77 is trying to acquire lock:\n\
                   Call Trace:\n f+0x1/0x2\n";
    let text = format!(
        "{lockdep}BUG: unable to handle page fault for address: ffffc90000000000\nOops: 0002 [#1]\n"
    );
    assert_eq!(kinds(&text), [SplatKind::Lockdep, SplatKind::Oops]);
}

#[test]
fn a_broken_list_is_one_report_with_its_bug_and_its_exception() {
    let splat = only(
        "list_del corruption. prev->next should be ffff888003f6b200, but was ffff888003f6b300
------------[ cut here ]------------
kernel BUG at lib/list_debug.c:53!
invalid opcode: 0000 [#1] PREEMPT SMP
RIP: 0010:__list_del_entry_valid.cold+0xf/0x6f
",
    );
    assert_eq!(splat.kind, SplatKind::Bug);
    assert_eq!(splat.lines.len(), 5);
}

#[test]
fn a_panic_that_was_asked_for_belongs_to_its_warning() {
    let warning =
        "WARNING: CPU: 0 PID: 1 at mm/x.c:1 f+0x1/0x2\n---[ end trace 0000000000000000 ]---\n";
    let asked = format!("{warning}Kernel panic - not syncing: kernel: panic_on_warn set ...\n");
    assert_eq!(kinds(&asked), [SplatKind::Warning]);
    let own = format!("{warning}Kernel panic - not syncing: stack-protector\n");
    assert_eq!(kinds(&own), [SplatKind::Warning, SplatKind::Panic]);
}
