//! The functions of the C library that this one stands before.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::sync::OnceLock;

use libc::{DIR, dirent64};

/// Whether an entry is wanted.
pub type Filter = unsafe extern "C" fn(*const dirent64) -> c_int;
/// Which of two entries comes first.
pub type Compare = unsafe extern "C" fn(*mut *const dirent64, *mut *const dirent64) -> c_int;
type Scan = unsafe extern "C" fn(
    *const c_char,
    *mut *mut *mut dirent64,
    Option<Filter>,
    Option<Compare>,
) -> c_int;

/// All of them.
pub struct Next {
    /// readdir.
    pub read: unsafe extern "C" fn(*mut DIR) -> *mut dirent64,
    /// rewinddir.
    pub rewind: unsafe extern "C" fn(*mut DIR),
    /// closedir.
    pub close: unsafe extern "C" fn(*mut DIR) -> c_int,
    /// scandir.
    pub scan: Scan,
}

/// Found once.
pub fn next() -> &'static Next {
    static FOUND: OnceLock<Next> = OnceLock::new();
    FOUND.get_or_init(|| {
        // SAFETY: each is a function of the C library of the type that it is declared with there.
        unsafe {
            Next {
                read: mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut DIR) -> *mut dirent64,
                >(find(c"readdir")),
                rewind: mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut DIR)>(find(
                    c"rewinddir",
                )),
                close: mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut DIR) -> c_int>(
                    find(c"closedir"),
                ),
                scan: mem::transmute::<*mut c_void, Scan>(find(c"scandir")),
            }
        }
    })
}

fn find(name: &CStr) -> *mut c_void {
    // SAFETY: takes a name that ends in a zero byte.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(
        !found.is_null(),
        "libequipoise_file_order: the C library has no {name:?}"
    );
    found
}
