//! Immediate dominators by the iterative algorithm of Cooper, Harvey and Kennedy.

use super::model::{BlockId, Function};

/// Immediate dominator of each block; `None` for the entry and for unreachable blocks.
pub fn immediate(function: &Function) -> Vec<Option<BlockId>> {
    let order = postorder(function);
    let mut number = vec![usize::MAX; function.blocks.len()];
    for (index, &block) in order.iter().enumerate() {
        number[block] = index;
    }
    let mut idom: Vec<Option<BlockId>> = vec![None; function.blocks.len()];
    if function.blocks.is_empty() {
        return idom;
    }
    idom[0] = Some(0);
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().rev().filter(|&&block| block != 0) {
            let mut new = None;
            for &pred in &function.blocks[block].preds {
                if idom[pred].is_some() {
                    new = Some(new.map_or(pred, |other| meet(&idom, &number, pred, other)));
                }
            }
            if new != idom[block] {
                idom[block] = new;
                changed = true;
            }
        }
    }
    idom[0] = None;
    idom
}

fn meet(idom: &[Option<BlockId>], number: &[usize], mut a: BlockId, mut b: BlockId) -> BlockId {
    while a != b {
        while number[a] < number[b] {
            a = idom[a].expect("a processed block has a dominator");
        }
        while number[b] < number[a] {
            b = idom[b].expect("a processed block has a dominator");
        }
    }
    a
}

/// Reachable blocks, each after its successors (except along back edges).
pub fn postorder(function: &Function) -> Vec<BlockId> {
    let mut order = Vec::new();
    let mut seen = vec![false; function.blocks.len()];
    if function.blocks.is_empty() {
        return order;
    }
    let mut stack = vec![(0, 0)];
    seen[0] = true;
    while let Some((block, next)) = stack.pop() {
        if let Some(&succ) = function.blocks[block].succs.get(next) {
            stack.push((block, next + 1));
            if !seen[succ] {
                seen[succ] = true;
                stack.push((succ, 0));
            }
        } else {
            order.push(block);
        }
    }
    order
}

/// Whether every path from the entry to `block` passes `above`.
pub fn dominates(idom: &[Option<BlockId>], above: BlockId, block: BlockId) -> bool {
    let mut at = Some(block);
    while let Some(current) = at {
        if current == above {
            return true;
        }
        at = idom[current];
    }
    false
}
