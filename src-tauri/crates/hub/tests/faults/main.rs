//! What goes wrong between a hub and a disk, and that no model is ever half there, or another one than it says.

mod python;
mod table;

use python::Python;
use table::{how_often, rows, run_all, HEAD};

/// For comparison; nothing is asked of it.
#[test]
fn the_same_through_huggingface_hub() {
    let (runs, seed) = how_often(1, 20);
    let Some(python) = Python::start() else { return };
    println!("report: faults through Python's huggingface_hub");
    println!("report: {HEAD}");
    for (row, ended) in rows().iter().zip(run_all(&rows(), &python, runs, seed)) {
        println!("report: {}", ended.line(row.name, runs));
        for (said, count) in &ended.said {
            println!("  {count} x {said}");
        }
    }
}
