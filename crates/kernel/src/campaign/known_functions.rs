//! Functions of Linux that synchronise, race on purpose, or are ordered by what is not seen; and what a user adds.

/// Functions of Linux whose own accesses are synchronisation and not data.
const LINUX_LOCKS: [&str; 30] = [
    "_raw_spin_*",
    "_raw_read_*",
    "_raw_write_*",
    "queued_spin*",
    "native_queued_spin*",
    "__pv_queued_spin*",
    "queued_read*",
    "queued_write*",
    "mutex_*",
    "__mutex*",
    "__ww_mutex*",
    "down_*",
    "__down*",
    "up_*",
    "up",
    "down",
    "rwsem_*",
    "percpu_down*",
    "percpu_up*",
    "__percpu_*",
    "osq_*",
    "rcu_*",
    "__rcu_*",
    "srcu_*",
    "__srcu_*",
    "call_rcu*",
    "synchronize_*",
    "complete",
    "complete_all",
    "wait_for_completion*",
];

/// Functions of Linux whose races are on purpose.
const LINUX_BENIGN: [(&str, &str); 12] = [
    (
        "update_rq_clock*",
        "clocks of run queues are read without their lock",
    ),
    (
        "select_task_rq*",
        "the scheduler's choice of a processor is a guess",
    ),
    (
        "select_idle*",
        "the scheduler's choice of a processor is a guess",
    ),
    (
        "available_idle_cpu",
        "the scheduler's choice of a processor is a guess",
    ),
    (
        "idle_cpu",
        "the scheduler's choice of a processor is a guess",
    ),
    ("task_tick*", "times of tasks are read without a lock"),
    ("scheduler_tick", "times of tasks are read without a lock"),
    ("update_load_avg*", "load is a statistic"),
    (
        "tick_*",
        "ticks of other processors are looked at without a lock",
    ),
    ("ktime_get*", "the clock is read under a sequence counter"),
    (
        "timekeeping_*",
        "the clock is written under a sequence counter",
    ),
    ("*vm_stat*", "statistics of memory are approximate"),
];

const OWN_APIC: &str = "each processor has its own interrupt controller at the same address";

/// Functions of Linux whose races are none, because what orders them is not seen.
const LINUX_ORDERED: [(&str, &str); 7] = [
    ("native_apic_*", OWN_APIC),
    ("__default_send_IPI_*", OWN_APIC),
    (
        "error_entry",
        "a stack that another processor was told by a plain store to leave alone",
    ),
    (
        "asm_*",
        "a stack that another processor was told by a plain store to leave alone",
    ),
    (
        "sysvec_*",
        "a stack that another processor was told by a plain store to leave alone",
    ),
    (
        "llist_*",
        "the list was taken as a whole by an exchange of its head",
    ),
    (
        "wake_page_function",
        "an entry of a stack that is given back by a plain store",
    ),
];

/// What a user says about the functions of a kernel; a function's name may have `*` for any characters.
#[derive(Debug, Clone, Default)]
pub struct KnownFunctions {
    /// Functions whose own accesses are synchronisation, instead of the built-in list.
    pub locks: Option<Vec<String>>,
    /// Further ones.
    pub more_locks: Vec<String>,
    /// Functions that race on purpose, and why; before the built-in ones.
    pub benign: Vec<(String, String)>,
    /// Functions that do not race, and why; before the built-in ones.
    pub ordered: Vec<(String, String)>,
}

impl KnownFunctions {
    /// All patterns of functions that synchronise.
    pub(super) fn all_locks(&self) -> Vec<String> {
        let built_in = || LINUX_LOCKS.map(str::to_owned).to_vec();
        let mut all = self.locks.clone().unwrap_or_else(built_in);
        all.extend(self.more_locks.iter().cloned());
        all
    }

    pub(super) fn all_benign(&self) -> Vec<(String, String)> {
        with_built_in(&self.benign, &LINUX_BENIGN)
    }

    pub(super) fn all_ordered(&self) -> Vec<(String, String)> {
        with_built_in(&self.ordered, &LINUX_ORDERED)
    }
}

fn with_built_in(own: &[(String, String)], built_in: &[(&str, &str)]) -> Vec<(String, String)> {
    let built_in = built_in
        .iter()
        .map(|(function, why)| ((*function).to_owned(), (*why).to_owned()));
    own.iter().cloned().chain(built_in).collect()
}

/// Whether a name fits a pattern in which `*` stands for any characters.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            match rest.find(middle) {
                Some(at) => rest = &rest[at + middle.len()..],
                None => return false,
            }
        }
    }
    match last {
        None => rest.is_empty(),
        Some(end) => rest.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(fits("mutex_*", "mutex_lock"));
        assert!(fits("up", "up") && !fits("up", "up_read"));
        assert!(fits("*vm_stat*", "mod_vm_state") && !fits("*vm_stat", "mod_vm_state"));
        assert!(fits("a*b*c", "axxbyyc") && !fits("a*b*c", "axxc"));
        assert!(!fits("mutex_*", "rt_mutex_lock"));
    }

    #[test]
    fn own_functions_come_first() {
        let own = KnownFunctions {
            more_locks: vec!["my_lock".to_owned()],
            benign: vec![("f".to_owned(), "w".to_owned())],
            ..KnownFunctions::default()
        };
        let locks = own.all_locks();
        assert!(locks.contains(&"my_lock".to_owned()) && locks.contains(&"mutex_*".to_owned()));
        assert_eq!(own.all_benign()[0].1, "w");
        let only = KnownFunctions {
            locks: Some(vec!["only".to_owned()]),
            ..own
        };
        assert_eq!(only.all_locks(), ["only", "my_lock"]);
    }
}
