// rust/async_lost_wake, buggy.
// Wrong: the event is set after the future has looked and before it has left its waker; nobody
// wakes the task again.
// Origin: Rust: a future that checks before it registers its waker, on a runtime with two
// worker threads

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

const TASKS: usize = 2;

type BoxedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct Runtime {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<Task>>,
    finished: usize,
}

struct Task {
    future: Mutex<Option<BoxedFuture>>,
    runtime: Arc<Runtime>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let runtime = Arc::clone(&self.runtime);
        runtime.state.lock().unwrap().ready.push_back(self);
        runtime.changed.notify_all();
    }
}

fn worker(runtime: &Runtime) {
    loop {
        let mut state = runtime.state.lock().unwrap();
        while state.ready.is_empty() && state.finished < TASKS {
            state = runtime.changed.wait(state).unwrap();
        }
        let Some(task) = state.ready.pop_front() else { return };
        drop(state);

        let waker = Waker::from(Arc::clone(&task));
        let mut slot = task.future.lock().unwrap();
        let Some(mut future) = slot.take() else { continue };
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *slot = Some(future);
        } else {
            runtime.state.lock().unwrap().finished += 1;
            runtime.changed.notify_all();
        }
    }
}

#[derive(Default)]
struct Event {
    set: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

struct Wait(Arc<Event>);

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0.set.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        *self.0.waker.lock().unwrap() = Some(context.waker().clone());
        Poll::Pending
    }
}

fn set(event: &Event) {
    event.set.store(true, Ordering::SeqCst);
    let waker = event.waker.lock().unwrap().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn spawn(runtime: &Arc<Runtime>, future: impl Future<Output = ()> + Send + 'static) {
    let task = Arc::new(Task {
        future: Mutex::new(Some(Box::pin(future))),
        runtime: Arc::clone(runtime),
    });
    task.wake();
}

fn main() {
    let runtime = Arc::new(Runtime::default());
    let event = Arc::new(Event::default());
    spawn(&runtime, Wait(Arc::clone(&event)));
    spawn(&runtime, async move { set(&event) });
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let runtime = Arc::clone(&runtime);
            thread::spawn(move || worker(&runtime))
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}
