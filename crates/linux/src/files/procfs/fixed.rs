//! The parts of /proc and /sys that never change in a world.

use std::fmt::Write;

use super::super::state::State;
use super::mount;

const FILESYSTEMS: &str = "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\n\text4\n";

/// (path, text) of everything that does not depend on the configuration.
const TEXTS: &[(&str, &str)] = &[
    ("/proc/filesystems", FILESYSTEMS),
    (
        "/proc/version",
        "Linux version 6.1.0-raddle (raddle@raddle) (gcc) #1 SMP PREEMPT_DYNAMIC\n",
    ),
    (
        "/proc/cmdline",
        "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro quiet\n",
    ),
    (
        "/proc/devices",
        "Character devices:\n  1 mem\n  5 /dev/tty\n\nBlock devices:\n  8 sd\n",
    ),
    (
        "/proc/swaps",
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
    ),
    ("/proc/modules", ""),
    ("/proc/partitions", "major minor  #blocks  name\n\n"),
    ("/proc/diskstats", ""),
    ("/proc/interrupts", ""),
    ("/proc/vmstat", "nr_free_pages 262144\n"),
    (
        "/proc/net/dev",
        "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n",
    ),
    (
        "/proc/net/if_inet6",
        "00000000000000000000000000000001 01 80 10 80       lo\n",
    ),
    (
        "/proc/net/unix",
        "Num       RefCount Protocol Flags    Type St Inode Path\n",
    ),
    (
        "/proc/net/route",
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n",
    ),
    ("/proc/sys/kernel/ostype", "Linux\n"),
    ("/proc/sys/kernel/osrelease", "6.1.0-raddle\n"),
    ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n"),
    ("/proc/sys/kernel/hostname", "raddle\n"),
    ("/proc/sys/kernel/domainname", "(none)\n"),
    ("/proc/sys/kernel/pid_max", "32768\n"),
    ("/proc/sys/kernel/threads-max", "15000\n"),
    ("/proc/sys/kernel/cap_last_cap", "40\n"),
    ("/proc/sys/kernel/ngroups_max", "65536\n"),
    ("/proc/sys/kernel/core_pattern", "core\n"),
    ("/proc/sys/kernel/randomize_va_space", "0\n"),
    ("/proc/sys/kernel/sem", "32000\t1024000000\t500\t32000\n"),
    ("/proc/sys/kernel/shmmax", "18446744073692774399\n"),
    ("/proc/sys/kernel/shmall", "18446744073692774399\n"),
    ("/proc/sys/kernel/shmmni", "4096\n"),
    ("/proc/sys/kernel/msgmax", "8192\n"),
    ("/proc/sys/kernel/msgmnb", "16384\n"),
    ("/proc/sys/kernel/yama/ptrace_scope", "1\n"),
    ("/proc/sys/kernel/perf_event_paranoid", "3\n"),
    ("/proc/sys/kernel/sched_autogroup_enabled", "0\n"),
    (
        "/proc/sys/kernel/random/boot_id",
        "0ddba110-0000-4000-8000-000000000001\n",
    ),
    (
        "/proc/sys/kernel/random/uuid",
        "0ddba110-0000-4000-8000-000000000002\n",
    ),
    ("/proc/sys/kernel/random/entropy_avail", "256\n"),
    ("/proc/sys/kernel/random/poolsize", "256\n"),
    ("/proc/sys/vm/overcommit_memory", "1\n"),
    ("/proc/sys/vm/overcommit_ratio", "50\n"),
    ("/proc/sys/vm/max_map_count", "65530\n"),
    ("/proc/sys/vm/mmap_min_addr", "65536\n"),
    ("/proc/sys/vm/swappiness", "60\n"),
    ("/proc/sys/vm/nr_hugepages", "0\n"),
    ("/proc/sys/fs/file-max", "1048576\n"),
    ("/proc/sys/fs/file-nr", "0\t0\t1048576\n"),
    ("/proc/sys/fs/nr_open", "1048576\n"),
    ("/proc/sys/fs/pipe-max-size", "1048576\n"),
    ("/proc/sys/fs/pipe-user-pages-soft", "16384\n"),
    ("/proc/sys/fs/protected_hardlinks", "0\n"),
    ("/proc/sys/fs/protected_symlinks", "0\n"),
    ("/proc/sys/fs/inotify/max_user_watches", "65536\n"),
    ("/proc/sys/fs/inotify/max_user_instances", "128\n"),
    ("/proc/sys/fs/inotify/max_queued_events", "16384\n"),
    ("/proc/sys/fs/epoll/max_user_watches", "65536\n"),
    ("/proc/sys/fs/mqueue/msg_max", "10\n"),
    ("/proc/sys/fs/aio-max-nr", "65536\n"),
    ("/proc/sys/net/core/somaxconn", "4096\n"),
    ("/proc/sys/net/core/rmem_max", "212992\n"),
    ("/proc/sys/net/core/wmem_max", "212992\n"),
    ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("/proc/sys/net/ipv4/tcp_max_syn_backlog", "512\n"),
    ("/proc/sys/net/ipv4/tcp_keepalive_time", "7200\n"),
    ("/proc/sys/net/ipv4/tcp_fin_timeout", "60\n"),
    (
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "always madvise [never]\n",
    ),
    (
        "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
        "2097152\n",
    ),
    (
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    ("/sys/devices/system/cpu/kernel_max", "63\n"),
    ("/sys/devices/system/cpu/isolated", "\n"),
    ("/sys/devices/system/cpu/offline", "\n"),
    ("/sys/devices/system/node/online", "0\n"),
    ("/sys/devices/system/node/possible", "0\n"),
    ("/sys/devices/system/node/has_cpu", "0\n"),
];

/// Makes /proc, /sys, and what in them does not change.
pub(crate) fn populate(state: &mut State) {
    mount(state);
    let sys = state.fixed_directory(state.root, b"sys");
    for name in [&b"fs"[..], b"class", b"block", b"bus", b"module"] {
        state.fixed_directory(sys, name);
    }
    for (path, text) in TEXTS {
        state.fixed_text(path, text);
    }
    processors(state);
}

fn processors(state: &mut State) {
    let cpus = state.config.cpus.max(1);
    let range = if cpus == 1 {
        "0\n".to_owned()
    } else {
        format!("0-{}\n", cpus - 1)
    };
    for name in ["online", "possible", "present"] {
        state.fixed_text(&format!("/sys/devices/system/cpu/{name}"), &range);
    }
    state.fixed_text("/sys/devices/system/node/node0/cpulist", &range);
    let mut info = String::new();
    for cpu in 0..cpus {
        let directory = format!("/sys/devices/system/cpu/cpu{cpu}");
        state.fixed_text(&format!("{directory}/online"), "1\n");
        for (name, text) in [
            ("core_id", format!("{cpu}\n")),
            ("physical_package_id", "0\n".to_owned()),
            ("thread_siblings_list", format!("{cpu}\n")),
            ("core_siblings_list", range.clone()),
        ] {
            state.fixed_text(&format!("{directory}/topology/{name}"), &text);
        }
        processor_info(&mut info, cpu, cpus);
    }
    state.fixed_text("/proc/cpuinfo", &info);
}

fn processor_info(info: &mut String, cpu: u32, cpus: u32) {
    let flags = "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse \
                 sse2 syscall nx lm constant_tsc rep_good nopl cpuid pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm";
    let written = write!(
        info,
        "processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 44\n\
         model name\t: raddle virtual processor (x86-64-v2)\nstepping\t: 0\nmicrocode\t: 0x1\n\
         cpu MHz\t\t: 1000.000\ncache size\t: 4096 KB\nphysical id\t: 0\nsiblings\t: {cpus}\n\
         core id\t\t: {cpu}\ncpu cores\t: {cpus}\napicid\t\t: {cpu}\ninitial apicid\t: {cpu}\nfpu\t\t: yes\n\
         fpu_exception\t: yes\ncpuid level\t: 11\nwp\t\t: yes\nflags\t\t: {flags}\nbugs\t\t:\n\
         bogomips\t: 2000.00\nclflush size\t: 64\ncache_alignment\t: 64\n\
         address sizes\t: 40 bits physical, 48 bits virtual\npower management:\n\n"
    );
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}
