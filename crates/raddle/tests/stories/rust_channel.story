finding 1 of 1: assertion failed: thread 'main' (1000) panicked at rust_channel.rs:13:5: out of order: 2, 1

  (1) thread 1 (main) reads `block(rust_channel.rs:7)+8` = 0 in `Receiver::recv`  rust_channel.rs:11  rust_channel::main               no locks
  (2) thread 1 (main) reads `block(rust_channel.rs:7)+128` = 0 in `Receiver::recv`  rust_channel.rs:11  rust_channel::main               no locks
  (3) thread 3 unlocks `block(rust_channel.rs:7)+256`  rust_channel.rs:10  rust_channel::main::{{closure}}  no locks
  (4) thread 3 atomically updates `block(rust_channel.rs:7)+384`, which was 2 in `ptr::drop_in_place`  rust_channel.rs:10  rust_channel::main::{{closure}}  no locks
  (5) thread 1 (main) atomically updates `block(rust_channel.rs:10)`, which was 1 in `Receiver::recv`  rust_channel.rs:11  rust_channel::main               no locks
  (6) thread 1 (main) reads `block(rust_channel.rs:7)+8` = 0x.. in `Receiver::recv`  rust_channel.rs:12  rust_channel::main               no locks
  (7) thread 1 (main) reads `block(rust_channel.rs:7)+128` = 2 in `Receiver::recv`  rust_channel.rs:12  rust_channel::main               no locks
  (8) thread 2 unlocks `block(rust_channel.rs:7)+256`  rust_channel.rs:9  rust_channel::main::{{closure}}   no locks
  (9) thread 2 atomically updates `block(rust_channel.rs:7)+400`, which was 0 in `ptr::drop_in_place`  rust_channel.rs:9  rust_channel::main::{{closure}}   no locks
  (10) thread 1 (main) atomically updates `block(rust_channel.rs:10)+16`, which was 1 in `Receiver::recv`  rust_channel.rs:12  rust_channel::main               no locks
  (11) thread 1 (main) gives up                        rust_channel.rs:13  rust_channel::main               no locks
      in this order thread 1 (main) gives up at rust_channel.rs:13 rust_channel::main

  rust_channel.rs
    9 │     let one = thread::spawn(move || sender.send(1).unwrap());  ◀ (8) (9)
   10 │     let two = thread::spawn(move || other.send(2).unwrap());  ◀ (3) (4)
   11 │     let first = receiver.recv().unwrap();  ◀ (1) (2) (5)
   12 │     let second = receiver.recv().unwrap();  ◀ (6) (7) (10)
   13 │     assert!(first < second, "out of order: {first}, {second}");  ◀ (11)

  70 more steps are left out; `--json` has all
  thread 3 was created at rust_channel.rs:10 rust_channel::main
  confirmed (error), object `block(rust_channel.rs:10)+16`

