// rust/condvar_if, buggy.
// Wrong: a consumer that was woken does not look again; another consumer took the item in
// between and pop gives None.
// Origin: Rust: Condvar waited for with if instead of while

use std::sync::{Arc, Condvar, Mutex};
use std::thread;

#[derive(Default)]
struct Queue {
    items: Mutex<Vec<u32>>,
    not_empty: Condvar,
}

fn produce(queue: &Queue) {
    for item in 0..2 {
        queue.items.lock().unwrap().push(item);
        queue.not_empty.notify_one();
    }
}

fn consume(queue: &Queue) -> u32 {
    let mut items = queue.items.lock().unwrap();
    if items.is_empty() {
        items = queue.not_empty.wait(items).unwrap();
    }
    items.pop().expect("woken up, so there is an item")
}

fn main() {
    let queue = Arc::new(Queue::default());
    let q = Arc::clone(&queue);
    let producer = thread::spawn(move || produce(&q));
    let consumers: Vec<_> = (0..2)
        .map(|_| {
            let q = Arc::clone(&queue);
            thread::spawn(move || consume(&q))
        })
        .collect();
    producer.join().unwrap();
    let sum: u32 = consumers.into_iter().map(|c| c.join().unwrap()).sum();
    assert_eq!(sum, 1);
}
