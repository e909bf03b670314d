// rust/spin_lock, fixed.
// Wrong: two threads see the lock free and both take it; both then update the protected value.
// Fix: swap takes the lock.
// Origin: Rust: home-made spin lock taken by load and store

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

struct SpinLock {
    taken: AtomicBool,
    value: UnsafeCell<u64>,
}

// SAFETY: `value` is only touched between `lock` and `unlock`; that `lock` excludes others is
// what this program tests.
unsafe impl Sync for SpinLock {}

impl SpinLock {
    fn lock(&self) {
        while self.taken.swap(true, Ordering::Acquire) {
            thread::yield_now();
        }
    }

    fn unlock(&self) {
        self.taken.store(false, Ordering::Release);
    }

    fn add(&self, amount: u64) {
        self.lock();
        let at = self.value.get();
        // SAFETY: see above; the accesses are volatile so that both really happen.
        unsafe {
            let seen = at.read_volatile();
            at.write_volatile(seen + amount);
        }
        self.unlock();
    }
}

fn main() {
    let lock = Arc::new(SpinLock {
        taken: AtomicBool::new(false),
        value: UnsafeCell::new(0),
    });
    let threads: Vec<_> = [3, 4]
        .into_iter()
        .map(|amount| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || lock.add(amount))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    // SAFETY: both threads have been joined.
    let total = unsafe { lock.value.get().read_volatile() };
    assert_eq!(total, 7);
}
