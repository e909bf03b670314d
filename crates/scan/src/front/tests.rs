//! Development measurement, replaced by data tests.
use super::unit::Unit;
use crate::idioms::Table;

#[test]
fn measure() {
    let Ok(dirs) = std::env::var("RADDLE_MEASURE") else { return };
    let table = Table::new(&Default::default()).unwrap();
    let words = table.words();
    for dir in dirs.split(',') {
        let mut total = super::unit::UnitStats::default();
        let mut stack = vec![std::path::PathBuf::from(dir)];
        let mut ev = 0usize; let mut ex = 0usize; let mut bytes_ir = 0usize;
        let start = std::time::Instant::now();
        while let Some(d) = stack.pop() {
            let mut entries: Vec<_> = std::fs::read_dir(&d).unwrap().map(|e| e.unwrap().path()).collect();
            entries.sort();
            for p in entries {
                if p.is_dir() { stack.push(p); continue; }
                if p.extension().is_none_or(|e| e != "c") { continue; }
                let text = std::fs::read(&p).unwrap();
                let u = Unit::parse(&text, &table, &words);
                total.bytes += u.stats.bytes; total.functions += u.stats.functions; total.damaged += u.stats.damaged; total.lost += u.stats.lost;
                ev += u.events.len(); ex += u.exprs.nodes.len();
                bytes_ir += u.events.len()*28 + u.exprs.nodes.len()*16;
                if std::env::var("RADDLE_SHOW").is_ok() {
                    for f in &u.functions { if f.damaged { 
                        let line = text[..f.pos as usize].iter().filter(|b| **b==b'\n').count()+1;
                        println!("{}:{line}", p.display()); } }
                    if u.stats.lost > 0 { println!("{}: lost {}", p.display(), u.stats.lost); }
                }
            }
        }
        println!("{dir}: {total:?} bad {:.2}% events {ev} exprs {ex} ir {} MB time {:?}", (total.damaged+total.lost) as f64*100.0/total.functions as f64, bytes_ir>>20, start.elapsed());
    }
}
