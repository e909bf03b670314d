//! The symbols of what a process has mapped, parsed once per file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use raddle_mem::{Backing, ObjectId, Vma};
use raddle_stdx::width::to_usize;
use raddle_symbols::{FileMapping, Mapping, Module, ModuleStore, Segment, SymbolSpace};

use crate::files;
use crate::kernel::Kernel;
use crate::thread::Tid;

/// Files larger than this are not searched for symbols.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Parsed files by the object they are mapped from; a file that is no ELF file is remembered as such.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    /// Files that other worlds have parsed, too.
    store: Arc<ModuleStore>,
    parsed: BTreeMap<ObjectId, Option<Arc<Module>>>,
}

impl Modules {
    pub(crate) fn of(store: Arc<ModuleStore>) -> Self {
        Self {
            store,
            parsed: BTreeMap::new(),
        }
    }

    /// The symbols of the thread's process as it is mapped now.
    pub(crate) fn space(&mut self, kernel: &mut Kernel, tid: Tid) -> SymbolSpace {
        let mut symbols = SymbolSpace::default();
        let areas: Vec<_> = kernel.space_of(tid).map.vmas().to_vec();
        let mut before: Option<(ObjectId, Mapping)> = None;
        for area in areas {
            let mapping = match area.backing {
                Backing::Anonymous => before
                    .as_ref()
                    .and_then(|(object, file)| Some((*object, zero_filled(file, &area)?))),
                Backing::Object { object, first_page } => {
                    let known = before.as_ref().filter(|(known, _)| *known == object);
                    let known = known.map(|(_, mapping)| mapping.bias);
                    self.file_mapping(kernel, &area, (object, first_page), known)
                        .map(|mapping| (object, mapping))
                }
            };
            if let Some((object, mapping)) = mapping {
                symbols.map(area.start.start().0, mapping.clone());
                before = Some((object, mapping));
            }
        }
        symbols
    }

    fn file_mapping(
        &mut self,
        kernel: &mut Kernel,
        area: &Vma,
        (object, first_page): (ObjectId, u64),
        bias_before: Option<u64>,
    ) -> Option<Mapping> {
        if area.label.is_empty() || area.shared {
            return None;
        }
        let module = self.module(kernel, object, &area.label)?;
        let bias = module.bias_of_mapping(FileMapping {
            at: area.start.start().0,
            file_offset: first_page << raddle_mem::PAGE_BITS,
            is_writable: area.perm.write,
            is_executable: area.perm.execute,
            bias_before,
        })?;
        Some(Mapping {
            end: area.end.start().0,
            bias,
            name: Arc::clone(&area.label),
            module,
        })
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
            let mut read = |path: &Path| kernel.host.debug_file(path);
            let found = self.store.module(label, bytes, &mut read);
            kernel.host.note_debug_files(&found.asked);
            found.module
        });
        // What was parsed without a file that it asked for is of no use to the next run.
        if kernel.host.missed.is_none() {
            self.parsed.insert(object, module.clone());
        }
        module
    }
}

/// The pages of a module's data that its file has no bytes for: anonymous memory right behind the mapped part.
fn zero_filled(file: &Mapping, area: &Vma) -> Option<Mapping> {
    let start = area.start.start().0;
    let holds = |segment: &Segment| segment.range().contains(&start.wrapping_sub(file.bias));
    let is_data = file.end == start && file.module.segments().iter().any(holds);
    is_data.then(|| Mapping {
        end: area.end.start().0,
        ..file.clone()
    })
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
