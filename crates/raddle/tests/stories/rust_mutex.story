finding 1 of 1: assertion failed: thread 'main' (1000) panicked at rust_mutex.rs:20:5: a seat was sold twice

  (1) thread 2 locks `rust_mutex::SEATS`                  rust_mutex.rs:9  rust_mutex::book   holds `rust_mutex::SEATS`
  (2) thread 2 reads `rust_mutex::SEATS` = 1              rust_mutex.rs:9  rust_mutex::book   holds `rust_mutex::SEATS`
  (3) thread 2 unlocks `rust_mutex::SEATS`                rust_mutex.rs:9  rust_mutex::book   no locks
  (4) thread 3 locks `rust_mutex::SEATS`                  rust_mutex.rs:9  rust_mutex::book   holds `rust_mutex::SEATS`
  (5) thread 3 reads `rust_mutex::SEATS` = 1              rust_mutex.rs:9  rust_mutex::book   holds `rust_mutex::SEATS`
  (6) thread 3 locks `rust_mutex::SEATS`                  rust_mutex.rs:11  rust_mutex::book  holds `rust_mutex::SEATS`
  (7) thread 3 updates `rust_mutex::SEATS`, which was 1   rust_mutex.rs:11  rust_mutex::book  holds `rust_mutex::SEATS`
  (8) thread 3 unlocks `rust_mutex::SEATS`                rust_mutex.rs:11  rust_mutex::book  no locks
  (9) thread 2 locks `rust_mutex::SEATS`                  rust_mutex.rs:11  rust_mutex::book  holds `rust_mutex::SEATS`
  (10) thread 2 updates `rust_mutex::SEATS`, which was 0  rust_mutex.rs:11  rust_mutex::book  holds `rust_mutex::SEATS`
  (11) thread 2 unlocks `rust_mutex::SEATS`               rust_mutex.rs:11  rust_mutex::book  no locks
  (12) thread 1 (main) locks `rust_mutex::SEATS`          rust_mutex.rs:20  rust_mutex::main  holds `rust_mutex::SEATS`
  (13) thread 1 (main) reads `rust_mutex::SEATS` = -1     rust_mutex.rs:20  rust_mutex::main  holds `rust_mutex::SEATS`
  (14) thread 1 (main) unlocks `rust_mutex::SEATS`        rust_mutex.rs:20  rust_mutex::main  no locks
  (15) thread 1 (main) gives up                           rust_mutex.rs:20  rust_mutex::main  no locks
      in this order thread 1 (main) gives up at rust_mutex.rs:20 rust_mutex::main

  rust_mutex.rs
    9 │     let free = *SEATS.lock().unwrap();  ◀ (1) (2) (3) (4) (5)
   11 │         *SEATS.lock().unwrap() -= 1;  ◀ (6) (7) (8) (9) (10) (11)
   20 │     assert!(*SEATS.lock().unwrap() >= 0, "a seat was sold twice");  ◀ (12) (13) (14) (15)

  1 more step is left out; `--json` has all
  thread 3 was created at rust_mutex.rs:16 rust_mutex::main::{{closure}}
  confirmed (error), object `rust_mutex::SEATS`

