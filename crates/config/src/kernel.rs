//! The `[kernel]` table: what `raddle kernel explore --races` knows of a kernel's functions.

use serde::Deserialize;

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

/// What a project says about its kernel; everything has a default, made for Linux.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Kernel {
    /// Functions whose own accesses are synchronisation; `*` stands for any characters. Replaces the built-in list.
    pub locks: Option<Vec<String>>,
    /// Further ones, beside the built-in list.
    pub more_locks: Vec<String>,
    /// Functions whose races are on purpose, beside the built-in ones.
    pub benign: Vec<Benign>,
}

/// A function whose races are on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Benign {
    /// `*` stands for any characters.
    pub function: String,
    pub why: String,
}

impl Kernel {
    /// All patterns of functions that synchronise.
    pub fn lock_functions(&self) -> Vec<String> {
        let built_in = || LINUX_LOCKS.map(str::to_owned).to_vec();
        let mut all = self.locks.clone().unwrap_or_else(built_in);
        all.extend(self.more_locks.iter().cloned());
        all
    }

    /// All functions whose races are on purpose: the project's own first.
    pub fn benign_functions(&self) -> Vec<Benign> {
        let built_in = LINUX_BENIGN.map(|(function, why)| Benign {
            function: function.to_owned(),
            why: why.to_owned(),
        });
        self.benign.iter().cloned().chain(built_in).collect()
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters.
pub fn fits(pattern: &str, name: &str) -> bool {
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
    fn a_project_adds_and_replaces() {
        let config = crate::parse(
            "version = 1\n[kernel]\nmore-locks = [\"my_lock\"]\nbenign = [{ function = \"f\", why = \"w\" }]\n",
        )
        .unwrap();
        let locks = config.kernel.lock_functions();
        assert!(locks.contains(&"my_lock".to_owned()) && locks.contains(&"mutex_*".to_owned()));
        assert_eq!(config.kernel.benign_functions()[0].why, "w");
        let config = crate::parse("version = 1\n[kernel]\nlocks = [\"only\"]\n").unwrap();
        assert_eq!(config.kernel.lock_functions(), ["only"]);
        assert!(crate::parse("version = 1\n[kernel]\nlock = 1\n").is_err());
    }
}
