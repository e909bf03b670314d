// rust/rwlock_upgrade, buggy.
// Wrong: the key is looked up under a read lock and inserted under a write lock without a
// second look; the value is computed and stored twice.
// Origin: Rust: read lock given up before the write lock is taken

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;

static COMPUTED: AtomicUsize = AtomicUsize::new(0);

fn compute(key: u32) -> u32 {
    COMPUTED.fetch_add(1, Ordering::SeqCst);
    key * key
}

fn get(cache: &RwLock<BTreeMap<u32, u32>>, key: u32) -> u32 {
    if let Some(&value) = cache.read().unwrap().get(&key) {
        return value;
    }
    let mut cache = cache.write().unwrap();
    let value = compute(key);
    cache.insert(key, value);
    value
}

fn main() {
    let cache = Arc::new(RwLock::new(BTreeMap::new()));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || assert_eq!(get(&cache, 7), 49))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(COMPUTED.load(Ordering::SeqCst), 1);
}
