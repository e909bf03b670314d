//! Loops that only wait, and loops that only look as if they did.

use crate::fixture::{compile, graph, loops};
use raddle_code::{Dominators, SpinLoop, spin_loops};
use raddle_symbols::Module;

fn spins(module: &Module, name: &str) -> Vec<SpinLoop> {
    let graph = graph(module, name);
    let dominators = Dominators::new(&graph);
    spin_loops(module, &graph, &dominators, &loops(&graph))
}

fn only(module: &Module, name: &str) -> SpinLoop {
    let found = spins(module, name);
    let [spin] = found.as_slice() else {
        panic!("{name}: {found:?}");
    };
    spin.clone()
}

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

#[test]
fn waiting_loops_are_found_with_what_they_read() {
    for level in LEVELS {
        let module = compile("shapes.c", &[level]);
        let flag = only(&module, "wait_flag");
        assert_eq!(
            (flag.loads.len(), flag.has_pause, flag.yields, flag.gives_up),
            (1, false, false, false)
        );
        let load = graph(&module, "wait_flag")
            .instructions()
            .find(|i| flag.loads.contains(&i.address))
            .cloned();
        let address = module.symbols().by_name("flag")[0].address;
        assert_eq!(
            load.unwrap().accesses[0].fixed_address(),
            Some(address),
            "{level}"
        );

        let pause = only(&module, "wait_pause");
        // Without optimisation the pointer itself is read from the stack each time.
        let n_loads = if level == "-O0" { 2 } else { 1 };
        assert_eq!(
            (pause.loads.len(), pause.has_pause),
            (n_loads, true),
            "{level}"
        );
        assert_eq!(only(&module, "wait_local").loads.len(), 1, "{level}");
        // Both the pointer and what it points to may change.
        assert_eq!(only(&module, "wait_through").loads.len(), 2, "{level}");
        let yielding = only(&module, "wait_yield");
        assert_eq!(
            (yielding.loads.len(), yielding.yields),
            (1, true),
            "{level}"
        );
        let bounded = only(&module, "wait_bounded");
        assert_eq!(
            (bounded.loads.len(), bounded.gives_up),
            (1, true),
            "{level}"
        );
    }
}

#[test]
fn spin_locks_are_found_with_their_attempts() {
    for level in LEVELS {
        let module = compile("shapes.c", &[level]);
        let exchange = only(&module, "lock_exchange");
        assert_eq!(
            (exchange.attempts.len(), exchange.gives_up),
            (1, false),
            "{level}"
        );
        let polite = spins(&module, "lock_polite");
        assert_eq!(polite.len(), 2, "{level}: {polite:?}");
        assert!(polite.iter().all(|spin| spin.has_pause));
    }
    for level in ["-O1", "-O2"] {
        let module = compile("shapes.c", &[level]);
        assert_eq!(only(&module, "lock_compare").attempts.len(), 1, "{level}");
        let tested = only(&module, "lock_test_first");
        assert_eq!(
            (tested.attempts.len(), tested.loads.len()),
            (1, 2),
            "{level}"
        );
    }
}

#[test]
fn loops_that_work_are_not_spin_loops() {
    for level in LEVELS {
        let module = compile("shapes.c", &[level]);
        for name in [
            "no_spin_count",
            "no_spin_list",
            "no_spin_walk",
            "no_spin_local",
            "no_spin_search",
            "no_spin_store",
            "no_spin_call",
            "no_spin_add",
            "no_spin_set",
            "no_spin_ticket",
            "nested",
        ] {
            assert_eq!(spins(&module, name), [], "{level} {name}");
        }
    }
}

#[test]
fn the_spin_lock_of_the_c_library_is_found() {
    let bytes = std::fs::read("/lib/x86_64-linux-gnu/libc.so.6").unwrap();
    let module = Module::parse_alone(bytes).unwrap();
    let spin = only(&module, "pthread_spin_lock");
    assert!(spin.has_pause && !spin.gives_up);
    // A mutex of the adaptive type spins for a while before it sleeps.
    let mutex = only(&module, "pthread_mutex_lock");
    assert!(
        mutex.has_pause && mutex.gives_up && mutex.attempts.len() == 1,
        "{mutex:?}"
    );
    assert_eq!(spins(&module, "qsort"), []);
}
