//! Graphs, loops, slices and spin loops of compiled and assembled functions.

mod address_flow;
mod failure_site;
mod fixture;
mod graph;
mod robustness;
mod slice;
mod spin;
