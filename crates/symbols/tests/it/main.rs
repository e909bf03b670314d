//! One test program for all questions to compiled files, so that it is linked once.

mod dwarf;
mod elf;
mod fixture;
mod mutation;
mod space;
mod unwind;
