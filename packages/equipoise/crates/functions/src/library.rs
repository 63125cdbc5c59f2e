//! Loads a shared library apart from all others, and lists its benchmarks.

use std::ffi::{CStr, CString, c_void};
use std::fs;
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use equipoise_reporting::problem::Problem;
use object::{Object, ObjectSymbol, SymbolKind};

use crate::timing::Random;

/// Beginning of the symbol of each benchmark.
const PREFIX: &str = "equipoise_bench_";
/// Symbol of the function that prepares the data of all benchmarks.
const SETUP: &CStr = c"equipoise_setup";
/// Maximum number of unused pages before a library.
const MAX_FREE_PAGES: u64 = 256;
/// Maximum number of unused units at the start of a heap, and the bytes of a unit.
const MAX_HEAP_UNITS: u64 = 256;
const HEAP_UNIT: usize = 16;

/// A benchmark: it makes a number of calls, and returns a value that depends on all of them.
pub type Benchmark = unsafe extern "C" fn(u64) -> u64;
type Setup = unsafe extern "C" fn();
type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;

/// Returns the names of the benchmarks of a library, without running any of its code.
pub fn benchmarks_of(path: &Path) -> Result<Vec<String>, Problem> {
    let name = path.to_string_lossy();
    let content = fs::read(path).map_err(Problem::system(&name))?;
    let file = object::File::parse(content.as_slice())
        .map_err(|error| Problem::failure(format!("{name} is not a shared library: {error}")))?;
    let mut names: Vec<String> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        .filter_map(|symbol| symbol.name().ok()?.strip_prefix(PREFIX).map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

/// A loaded library, in a namespace with its own copies of the libraries that it needs.
pub struct Library {
    handle: *mut c_void,
    name: String,
}

impl Library {
    pub fn load(path: &Path) -> Result<Self, Problem> {
        let name = path.to_string_lossy().into_owned();
        let file = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Problem::usage(format!("{name} has a null character")))?;
        // SAFETY: the path ends with a null. The constructors of the library are the user's code.
        let handle = unsafe {
            libc::dlmopen(
                libc::LM_ID_NEWLM,
                file.as_ptr(),
                libc::RTLD_NOW | libc::RTLD_LOCAL,
            )
        };
        if handle.is_null() {
            return Err(Problem::failure(loader_error()));
        }
        Ok(Self { handle, name })
    }

    /// Lets the library prepare its data, if it has a function for this.
    pub fn set_up(&self) {
        let symbol = self.symbol(SETUP);
        if !symbol.is_null() {
            // SAFETY: a function with this name has this type (equipoise_functions.h).
            unsafe { mem::transmute::<*mut c_void, Setup>(symbol)() };
        }
    }

    pub fn benchmark(&self, name: &str) -> Result<Benchmark, Problem> {
        let missing = || Problem::failure(format!("{} has no {PREFIX}{name}", self.name));
        let symbol = CString::new(format!("{PREFIX}{name}")).map_err(|_| missing())?;
        let address = self.symbol(&symbol);
        if address.is_null() {
            return Err(missing());
        }
        // SAFETY: a function with this prefix has this type (equipoise_functions.h).
        Ok(unsafe { mem::transmute::<*mut c_void, Benchmark>(address) })
    }

    /// Moves what the library allocates: an unused block is allocated first, in its own heap.
    pub fn shift_heap(&self, random: &mut Random) {
        let units = usize::try_from(random.below(MAX_HEAP_UNITS)).unwrap_or(0);
        let malloc = self.symbol(c"malloc");
        if !malloc.is_null() {
            // SAFETY: this is the `malloc` of the C library that the library uses.
            unsafe { mem::transmute::<*mut c_void, Malloc>(malloc)(units * HEAP_UNIT) };
        }
    }

    fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is that of a library that is never unloaded.
        unsafe { libc::dlsym(self.handle, name.as_ptr()) }
    }
}

/// Keeps a random number of pages unused, so that the next library lies elsewhere.
pub fn keep_pages_free(random: &mut Random) -> Result<(), Problem> {
    const PAGE: usize = 4096;
    let pages = 1 + usize::try_from(random.below(MAX_FREE_PAGES)).unwrap_or(0);
    // SAFETY: a new mapping without access overlaps nothing, and nobody uses it.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            pages * PAGE,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(Problem::system("unused pages")(io::Error::last_os_error()));
    }
    Ok(())
}

fn loader_error() -> String {
    // SAFETY: the loader returns a text that ends with a null, or a null pointer.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "the loader gives no reason".to_owned();
    }
    // SAFETY: see above; the text stays until the next call of the loader in this thread.
    unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned()
}
