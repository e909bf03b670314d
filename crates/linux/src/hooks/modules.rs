//! The symbols of what a process has mapped, parsed once per file.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_mem::{Backing, ObjectId};
use raddle_stdx::width::to_usize;
use raddle_symbols::{DebugFileFinder, FileMapping, Mapping, Module, SymbolSpace};

use crate::files;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Files larger than this are not searched for symbols.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Parsed files by the object they are mapped from; a file that is no ELF file is remembered as such.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    parsed: BTreeMap<ObjectId, Option<Arc<Module>>>,
}

impl Modules {
    /// The symbols of the thread's process as it is mapped now.
    pub(crate) fn space(&mut self, kernel: &mut Kernel, tid: Tid) -> SymbolSpace {
        let mut symbols = SymbolSpace::default();
        let areas: Vec<_> = kernel.space_of(tid).map.vmas().to_vec();
        for area in areas {
            let Backing::Object { object, first_page } = area.backing else {
                continue;
            };
            if area.label.is_empty() || area.shared {
                continue;
            }
            let Some(module) = self.module(kernel, object, &area.label) else {
                continue;
            };
            let start = area.start.start().0;
            let mapping = FileMapping {
                at: start,
                file_offset: first_page << raddle_mem::PAGE_BITS,
                is_writable: area.perm.write,
                is_executable: area.perm.execute,
            };
            let Some(bias) = module.bias_of_mapping(mapping) else {
                continue;
            };
            let name = Arc::clone(&area.label);
            symbols.map(
                start,
                Mapping {
                    end: area.end.start().0,
                    bias,
                    name,
                    module,
                },
            );
        }
        symbols
    }

    fn module(
        &mut self,
        kernel: &mut Kernel,
        object: ObjectId,
        label: &str,
    ) -> Option<Arc<Module>> {
        if let Some(known) = self.parsed.get(&object) {
            return known.clone();
        }
        let module = read_whole(kernel, object).and_then(|bytes| {
            let finder = DebugFileFinder::default().beside(std::path::Path::new(label));
            Module::parse(bytes, &mut |request| finder.fetch(request)).ok()
        });
        let module = module.map(Arc::new);
        self.parsed.insert(object, module.clone());
        module
    }
}

fn read_whole(kernel: &mut Kernel, object: ObjectId) -> Option<Vec<u8>> {
    let size = files::object_size(kernel, object)?;
    if size > FILE_BYTES_MAX {
        return None;
    }
    let mut bytes = vec![0; to_usize(size)];
    let mut done = 0;
    while done < bytes.len() {
        let count = files::read_object(
            kernel,
            object,
            raddle_stdx::width::to_u64(done),
            &mut bytes[done..],
        )
        .ok()?;
        if count == 0 {
            return None;
        }
        done += count;
    }
    Some(bytes)
}
