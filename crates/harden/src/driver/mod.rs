//! The compiler driver.
