//! System calls: the table in `table.rs` is data, the handlers are in one file per family.
