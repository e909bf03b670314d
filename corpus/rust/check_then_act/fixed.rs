// rust/check_then_act, fixed.
// Wrong: the balance is checked under one lock and taken under another; both threads pass the
// check and the account is overdrawn.
// Fix: one guard covers the check and the withdrawal.
// Origin: Rust: check and act under two locks of the same Mutex

use std::sync::{Arc, Mutex};
use std::thread;

fn withdraw(account: &Mutex<i64>, amount: i64) {
    let mut balance = account.lock().unwrap();
    if *balance >= amount {
        *balance -= amount;
    }
}

fn main() {
    let account = Arc::new(Mutex::new(100));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let account = Arc::clone(&account);
            thread::spawn(move || withdraw(&account, 80))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(*account.lock().unwrap() >= 0);
}
