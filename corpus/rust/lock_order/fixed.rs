// rust/lock_order, fixed.
// Wrong: a transfer locks the source and then the target; two opposite transfers wait for each
// other.
// Fix: the lower account is always locked first.
// Origin: Rust: two Mutexes in opposite orders

use std::sync::{Arc, Mutex};
use std::thread;

type Accounts = [Mutex<i64>; 2];

fn transfer(accounts: &Accounts, from: usize, to: usize, amount: i64) {
    let mut low = accounts[from.min(to)].lock().unwrap();
    let mut high = accounts[from.max(to)].lock().unwrap();
    let signed = if from < to { amount } else { -amount };
    *low -= signed;
    *high += signed;
}

fn main() {
    let accounts: Arc<Accounts> = Arc::new([Mutex::new(50), Mutex::new(50)]);
    let there = Arc::clone(&accounts);
    let back = Arc::clone(&accounts);
    let t1 = thread::spawn(move || transfer(&there, 0, 1, 10));
    let t2 = thread::spawn(move || transfer(&back, 1, 0, 10));
    t1.join().unwrap();
    t2.join().unwrap();
    let sum = *accounts[0].lock().unwrap() + *accounts[1].lock().unwrap();
    assert_eq!(sum, 100);
}
