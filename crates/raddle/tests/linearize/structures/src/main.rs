//! Concurrent structures from crates.io, as they are and with a wrapper that looks before it acts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Condvar, Mutex};
use std::thread;

use concurrent_queue::ConcurrentQueue;
use crossbeam_epoch::{self as epoch, Atomic, Owned};
use crossbeam_queue::{ArrayQueue, SegQueue};
use crossbeam_skiplist::SkipMap;
use dashmap::DashMap;
use raddle_annotations::{operation, probe};

/// What a client does.
type Deed<S> = fn(&S);

/// Each client does its deeds on a thread of its own.
fn race<S: Sync>(shared: &S, clients: &[&[Deed<S>]]) {
    thread::scope(|scope| {
        for deeds in clients {
            scope.spawn(|| deeds.iter().for_each(|deed| deed(shared)));
        }
    });
}

fn seg_queue(is_seeded: bool) {
    let queue = SegQueue::new();
    fn push(queue: &SegQueue<u32>, value: u32) {
        operation("push", &[&value], || queue.push(value));
    }
    fn pop(queue: &SegQueue<u32>) {
        operation("pop", &[], || queue.pop());
    }
    fn pop_two(queue: &SegQueue<u32>) {
        operation("pop_two", &[], || (queue.pop(), queue.pop()));
    }
    if is_seeded {
        (1..=4).for_each(|value| queue.push(value));
        race(&queue, &[&[pop_two], &[pop_two]]);
    } else {
        race(
            &queue,
            &[
                &[|q| push(q, 1), pop, |q| push(q, 2)],
                &[|q| push(q, 3), pop, pop],
                &[pop, |q| push(q, 4)],
            ],
        );
    }
    probe("drain", &[], || {
        std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>()
    });
}

fn array_queue(is_seeded: bool) {
    let queue = ArrayQueue::new(2);
    fn push(queue: &ArrayQueue<u32>, value: u32) {
        operation("push", &[&value], || queue.push(value));
    }
    fn force(queue: &ArrayQueue<u32>, value: u32) {
        operation("force_push", &[&value], || queue.force_push(value));
    }
    fn force_by_hand(queue: &ArrayQueue<u32>, value: u32) {
        operation("force_push", &[&value], || {
            let old = if queue.is_full() { queue.pop() } else { None };
            queue.push(value).map(|()| old)
        });
    }
    fn pop(queue: &ArrayQueue<u32>) {
        operation("pop", &[], || queue.pop());
    }
    if is_seeded {
        race(
            &queue,
            &[
                &[|q| push(q, 1), |q| force_by_hand(q, 2)],
                &[|q| push(q, 3), |q| force_by_hand(q, 4)],
            ],
        );
    } else {
        race(
            &queue,
            &[
                &[|q| push(q, 1), |q| force(q, 2), pop],
                &[|q| push(q, 3), pop, |q| force(q, 4)],
            ],
        );
    }
    probe("drain", &[], || {
        std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>()
    });
}

fn concurrent_queue(is_seeded: bool) {
    let queue = ConcurrentQueue::unbounded();
    fn push(queue: &ConcurrentQueue<u32>, value: u32) {
        operation("push", &[&value], || queue.push(value).is_ok());
    }
    fn pop(queue: &ConcurrentQueue<u32>) {
        operation("pop", &[], || queue.pop().ok());
    }
    fn close(queue: &ConcurrentQueue<u32>) {
        operation("close", &[], || queue.close());
    }
    fn pop_two(queue: &ConcurrentQueue<u32>) {
        operation("pop_two", &[], || (queue.pop().ok(), queue.pop().ok()));
    }
    if is_seeded {
        for value in 1..=4 {
            queue.push(value).unwrap();
        }
        race(&queue, &[&[pop_two], &[pop_two]]);
    } else {
        race(
            &queue,
            &[
                &[|q| push(q, 1), close, pop],
                &[|q| push(q, 2), pop, |q| push(q, 3)],
            ],
        );
    }
    probe("drain", &[], || {
        std::iter::from_fn(|| queue.pop().ok()).collect::<Vec<_>>()
    });
}

fn dash_map(is_seeded: bool) {
    type Map = DashMap<u32, u32>;
    let map = Map::new();
    fn get_or_insert(map: &Map, key: u32, value: u32) {
        operation("get_or_insert", &[&key, &value], || {
            *map.entry(key).or_insert(value)
        });
    }
    fn look_and_insert(map: &Map, key: u32, value: u32) {
        operation("get_or_insert", &[&key, &value], || {
            let found = map.get(&key).map(|found| *found);
            found.unwrap_or_else(|| {
                map.insert(key, value);
                value
            })
        });
    }
    fn remove(map: &Map, key: u32) {
        operation("remove", &[&key], || map.remove(&key));
    }
    fn contains(map: &Map) {
        operation("contains", &[&1], || map.contains_key(&1));
    }
    if is_seeded {
        race(
            &map,
            &[
                &[|m| look_and_insert(m, 1, 10)],
                &[|m| look_and_insert(m, 1, 20)],
            ],
        );
    } else {
        race(
            &map,
            &[
                &[|m| get_or_insert(m, 1, 10), contains, |m| remove(m, 2)],
                &[
                    |m| get_or_insert(m, 1, 20),
                    |m| get_or_insert(m, 2, 30),
                    |m| remove(m, 1),
                ],
            ],
        );
    }
    probe("entries", &[], || {
        map.iter()
            .map(|entry| (*entry.key(), *entry.value()))
            .collect::<BTreeMap<_, _>>()
    });
}

fn skip_map(is_seeded: bool) {
    type Map = SkipMap<u32, u32>;
    let map = Map::new();
    fn insert(map: &Map, key: u32, value: u32) {
        operation("get_or_insert", &[&key, &value], || {
            *map.get_or_insert(key, value).value()
        });
    }
    fn add(map: &Map, key: u32) {
        operation("add", &[&key], || {
            let is_new = !map.contains_key(&key);
            if is_new {
                map.insert(key, key);
            }
            is_new
        });
    }
    fn remove(map: &Map, key: u32) {
        operation("remove", &[&key], || map.remove(&key).map(|e| *e.value()));
    }
    fn front(map: &Map) {
        operation("front", &[], || map.front().map(|e| *e.key()));
    }
    if is_seeded {
        race(&map, &[&[|m| add(m, 1)], &[|m| add(m, 1)]]);
    } else {
        race(
            &map,
            &[
                &[|m| insert(m, 1, 10), |m| remove(m, 2), front],
                &[|m| insert(m, 2, 20), |m| insert(m, 1, 30), |m| remove(m, 1)],
            ],
        );
    }
    probe("entries", &[], || {
        map.iter()
            .map(|e| (*e.key(), *e.value()))
            .collect::<Vec<_>>()
    });
}

fn scc_map(is_seeded: bool) {
    type Map = scc::HashMap<u32, u32>;
    let map = Map::new();
    let _ = map.insert(1, 0);
    fn add(map: &Map, key: u32, number: u32) {
        operation("add", &[&key, &number], || {
            map.update(&key, |_, value| {
                *value += number;
                *value
            })
        });
    }
    fn add_by_hand(map: &Map, key: u32, number: u32) {
        operation("add", &[&key, &number], || {
            let sum = map.read(&key, |_, value| *value)? + number;
            map.update(&key, |_, value| {
                *value = sum;
                sum
            })
        });
    }
    fn insert(map: &Map, key: u32) {
        operation("insert", &[&key], || map.insert(key, key).is_ok());
    }
    fn remove(map: &Map, key: u32) {
        operation("remove", &[&key], || map.remove(&key));
    }
    if is_seeded {
        race(
            &map,
            &[&[|m| add_by_hand(m, 1, 1)], &[|m| add_by_hand(m, 1, 10)]],
        );
    } else {
        race(
            &map,
            &[
                &[|m| add(m, 1, 1), |m| insert(m, 2), |m| remove(m, 1)],
                &[|m| add(m, 1, 10), |m| insert(m, 2), |m| add(m, 1, 100)],
            ],
        );
    }
    probe("entries", &[], || {
        let mut all = BTreeMap::new();
        map.scan(|key, value| drop(all.insert(*key, *value)));
        all
    });
}

fn channel(is_seeded: bool) {
    type Both = (
        crossbeam_channel::Sender<u32>,
        crossbeam_channel::Receiver<u32>,
    );
    let both: Both = crossbeam_channel::bounded(1);
    fn send(both: &Both, value: u32) {
        operation("try_send", &[&value], || both.0.try_send(value));
    }
    fn send_by_hand(both: &Both, value: u32) {
        operation("try_send", &[&value], || {
            if both.0.is_full() {
                return "full".to_owned();
            }
            format!("{:?}", both.0.try_send(value))
        });
    }
    fn receive(both: &Both) {
        operation("try_recv", &[], || both.1.try_recv());
    }
    if is_seeded {
        race(
            &both,
            &[&[|b| send_by_hand(b, 1)], &[|b| send_by_hand(b, 2)]],
        );
    } else {
        race(
            &both,
            &[
                &[|b| send(b, 1), receive, |b| send(b, 2)],
                &[|b| send(b, 3), receive],
            ],
        );
    }
    probe("drain", &[], || both.1.try_iter().collect::<Vec<_>>());
}

/// A stack without locks.
struct Stack {
    head: Atomic<Node>,
}

struct Node {
    value: u32,
    next: Atomic<Node>,
}

impl Stack {
    fn push(&self, value: u32) {
        let guard = epoch::pin();
        let mut node = Owned::new(Node {
            value,
            next: Atomic::null(),
        });
        loop {
            let head = self.head.load(Acquire, &guard);
            node.next.store(head, Release);
            match self
                .head
                .compare_exchange(head, node, Release, Acquire, &guard)
            {
                Ok(_) => return,
                Err(error) => node = error.new,
            }
        }
    }

    fn pop(&self, is_seeded: bool) -> Option<u32> {
        let guard = epoch::pin();
        loop {
            let head = self.head.load(Acquire, &guard);
            // SAFETY: what is reachable while we are pinned is not freed.
            let node = unsafe { head.as_ref() }?;
            let next = node.next.load(Acquire, &guard);
            if is_seeded {
                // Nothing is looked at again: what was pushed meanwhile is lost.
                self.head.store(next, Release);
                return Some(node.value);
            }
            if self
                .head
                .compare_exchange(head, next, AcqRel, Acquire, &guard)
                .is_ok()
            {
                // SAFETY: only those who are pinned can still reach the node.
                unsafe { guard.defer_destroy(head) };
                return Some(node.value);
            }
        }
    }
}

fn stack(is_seeded: bool) {
    let stack = Stack {
        head: Atomic::null(),
    };
    fn push(stack: &Stack, value: u32) {
        operation("push", &[&value], || stack.push(value));
    }
    fn pop(stack: &Stack) {
        operation("pop", &[], || stack.pop(false));
    }
    fn pop_seeded(stack: &Stack) {
        operation("pop", &[], || stack.pop(true));
    }
    if is_seeded {
        race(
            &stack,
            &[&[|s| push(s, 1), pop_seeded], &[|s| push(s, 2), pop_seeded]],
        );
    } else {
        race(
            &stack,
            &[
                &[|s| push(s, 1), pop, |s| push(s, 2)],
                &[|s| push(s, 3), pop, pop],
            ],
        );
    }
    probe("drain", &[], || {
        std::iter::from_fn(|| stack.pop(false)).collect::<Vec<_>>()
    });
}

/// A queue with room for one, in which both sides wait.
struct Blocking {
    values: Mutex<VecDeque<u32>>,
    changed: Condvar,
}

fn blocking(is_seeded: bool) {
    let queue = Blocking {
        values: Mutex::new(VecDeque::new()),
        changed: Condvar::new(),
    };
    fn put(queue: &Blocking, value: u32) {
        operation("put", &[&value], || {
            let values = queue.values.lock().unwrap();
            let mut values = queue
                .changed
                .wait_while(values, |values| !values.is_empty())
                .unwrap();
            values.push_back(value);
            queue.changed.notify_all();
        });
    }
    fn put_by_hand(queue: &Blocking, value: u32) {
        operation("put", &[&value], || {
            drop(
                queue
                    .changed
                    .wait_while(queue.values.lock().unwrap(), |values| !values.is_empty())
                    .unwrap(),
            );
            queue.values.lock().unwrap().push_back(value);
            queue.changed.notify_all();
        });
    }
    fn take(queue: &Blocking) {
        operation("take", &[], || {
            let values = queue.values.lock().unwrap();
            let mut values = queue
                .changed
                .wait_while(values, |values| values.is_empty())
                .unwrap();
            let value = values.pop_front();
            queue.changed.notify_all();
            value
        });
    }
    fn len(queue: &Blocking) {
        operation("len", &[], || queue.values.lock().unwrap().len());
    }
    if is_seeded {
        race(
            &queue,
            &[
                &[|q| put_by_hand(q, 1), len],
                &[|q| put_by_hand(q, 2)],
                &[take],
            ],
        );
    } else {
        race(
            &queue,
            &[
                &[|q| put(q, 1), len, |q| put(q, 2)],
                &[take, take],
                &[|q| put(q, 3), take],
            ],
        );
    }
    probe("left", &[], || queue.values.lock().unwrap().clone());
}

/// Values that are computed once and shared by readers.
fn cache(is_seeded: bool) {
    type Cache = parking_lot::RwLock<(u32, BTreeMap<u32, u32>)>;
    let cache = Cache::new((1, BTreeMap::new()));
    fn get(cache: &Cache, key: u32) {
        operation("get", &[&key], || {
            if let Some(found) = cache.read().1.get(&key) {
                return *found;
            }
            let mut cache = cache.write();
            let factor = cache.0;
            *cache.1.entry(key).or_insert(key * factor)
        });
    }
    fn get_seeded(cache: &Cache, key: u32) {
        operation("get", &[&key], || {
            let found = {
                let cache = cache.read();
                cache.1.get(&key).copied().ok_or(key * cache.0)
            };
            found.unwrap_or_else(|fresh| *cache.write().1.entry(key).or_insert(fresh))
        });
    }
    fn set(cache: &Cache, factor: u32) {
        operation("set", &[&factor], || {
            let mut cache = cache.write();
            cache.0 = factor;
            cache.1.clear();
        });
    }
    if is_seeded {
        race(&cache, &[&[|c| get_seeded(c, 3)], &[|c| set(c, 5)]]);
    } else {
        race(
            &cache,
            &[
                &[|c| get(c, 3), |c| get(c, 4)],
                &[|c| set(c, 5), |c| get(c, 3)],
                &[|c| get(c, 3)],
            ],
        );
    }
    for key in [3, 4] {
        probe("get", &[&key], || {
            cache
                .read()
                .1
                .get(&key)
                .copied()
                .unwrap_or(key * cache.read().0)
        });
    }
}

/// Many clients and operations, all of which overlap.
fn crowd(_: bool) {
    type Map = [Mutex<BTreeMap<u32, u32>>; 4];
    let map = Map::default();
    fn put(map: &Map, key: u32) {
        operation("put", &[&key], || {
            drop(map[key as usize % 4].lock().unwrap().insert(key, key))
        });
    }
    race(
        &map,
        &[
            &[
                |m| put(m, 0),
                |m| put(m, 4),
                |m| put(m, 8),
                |m| put(m, 12),
                |m| put(m, 16),
                |m| put(m, 20),
            ],
            &[
                |m| put(m, 1),
                |m| put(m, 5),
                |m| put(m, 9),
                |m| put(m, 13),
                |m| put(m, 17),
                |m| put(m, 21),
            ],
            &[
                |m| put(m, 2),
                |m| put(m, 6),
                |m| put(m, 10),
                |m| put(m, 14),
                |m| put(m, 18),
                |m| put(m, 22),
            ],
            &[
                |m| put(m, 3),
                |m| put(m, 7),
                |m| put(m, 11),
                |m| put(m, 15),
                |m| put(m, 19),
                |m| put(m, 23),
            ],
        ],
    );
    probe("entries", &[], || {
        map.iter()
            .map(|part| part.lock().unwrap().clone())
            .collect::<Vec<_>>()
    });
}

fn main() {
    let name = std::env::args().nth(1).expect("the name of a structure");
    let is_seeded = std::env::args().nth(2).is_some();
    let run = match &*name {
        "seg_queue" => seg_queue,
        "array_queue" => array_queue,
        "concurrent_queue" => concurrent_queue,
        "dash_map" => dash_map,
        "skip_map" => skip_map,
        "scc_map" => scc_map,
        "channel" => channel,
        "stack" => stack,
        "blocking" => blocking,
        "cache" => cache,
        "crowd" => crowd,
        _ => panic!("no structure is named {name}"),
    };
    run(is_seeded);
}
