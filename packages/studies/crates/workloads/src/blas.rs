//! Products and inverses of matrices by the system's BLAS and LAPACK, opened at run time.
//!
//! The Fortran interface of the reference implementation (netlib.org/blas, netlib.org/lapack):
//! columns one after another, 32-bit integers, lengths of character arguments at the end.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use crate::library::{Library, file_of};
use crate::problem::Problem;

/// The soname that every BLAS of Debian provides.
pub const BLAS: &str = "libblas.so.3";
/// The soname that every LAPACK of Debian provides.
const LAPACK: &str = "liblapack.so.3";

const BLAS_PACKAGES: &str = "libblas3, libatlas3-base, libopenblas0-pthread, libblis4-pthread";
const LAPACK_PACKAGES: &str = "liblapack3, libatlas3-base, libopenblas0-pthread";

type Dgemm = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_int,
    *const c_int,
    *const c_int,
    *const f64,
    *const f64,
    *const c_int,
    *const f64,
    *const c_int,
    *const f64,
    *mut f64,
    *const c_int,
    usize,
    usize,
);
type Dgetrf = unsafe extern "C" fn(
    *const c_int,
    *const c_int,
    *mut f64,
    *const c_int,
    *mut c_int,
    *mut c_int,
);
type Dgetri = unsafe extern "C" fn(
    *const c_int,
    *mut f64,
    *const c_int,
    *const c_int,
    *mut f64,
    *const c_int,
    *mut c_int,
);

/// The product of an open BLAS.
pub struct Blas {
    address: *mut c_void,
    dgemm: Dgemm,
}

impl Blas {
    /// Opens the library by name or path.
    pub fn open(name: &str) -> Result<Self, Problem> {
        Self::within(&Library::open(name, BLAS_PACKAGES)?)
    }

    fn within(library: &Library) -> Result<Self, Problem> {
        let address = library.function(c"dgemm_")?;
        Ok(Self {
            address,
            // SAFETY: this is the signature of dgemm_ in every BLAS with 32-bit integers.
            dgemm: unsafe { std::mem::transmute::<*mut c_void, Dgemm>(address) },
        })
    }

    /// The file that the product comes from.
    pub fn file(&self) -> String {
        file_of(self.address)
    }

    /// `product` becomes `left` (rows × inner) times `right` (inner × columns), each with its
    /// columns one after another.
    pub fn multiply(
        &self,
        (rows, inner, columns): (usize, usize, usize),
        left: &[f64],
        right: &[f64],
        product: &mut [f64],
    ) {
        assert_eq!(left.len(), rows * inner);
        assert_eq!(right.len(), inner * columns);
        assert_eq!(product.len(), rows * columns);
        let (m, k, n) = (in_fortran(rows), in_fortran(inner), in_fortran(columns));
        // SAFETY: the three arrays are as long as the sizes and leading dimensions require.
        unsafe {
            (self.dgemm)(
                c"N".as_ptr(),
                c"N".as_ptr(),
                &raw const m,
                &raw const n,
                &raw const k,
                &raw const ONE,
                left.as_ptr(),
                &raw const m,
                right.as_ptr(),
                &raw const k,
                &raw const ZERO,
                product.as_mut_ptr(),
                &raw const m,
                1,
                1,
            );
        }
    }
}

static ONE: f64 = 1.0;
static ZERO: f64 = 0.0;

/// The inverse of an open LAPACK, and the product of the BLAS that it uses.
pub struct Lapack {
    address: *mut c_void,
    dgetrf: Dgetrf,
    dgetri: Dgetri,
    /// The BLAS that this LAPACK uses.
    pub blas: Blas,
}

impl Lapack {
    /// Opens the LAPACK that belongs to an open BLAS: first the library's own in the BLAS's folder,
    /// then the reference implementation where Debian installs it, then the one that the dynamic
    /// linker finds. A LAPACK that needs `libblas.so.3` uses the open BLAS.
    pub fn belonging_to(blas: &Blas) -> Result<Self, Problem> {
        let file = blas.file();
        let folder = Path::new(&file).parent().unwrap_or(Path::new("/"));
        let places = [folder.join(LAPACK), folder.join("../lapack").join(LAPACK)];
        match places.iter().find(|place| place.exists()) {
            Some(place) => Self::open(&place.to_string_lossy()),
            None => Self::open(LAPACK),
        }
    }

    /// Opens the library by name or path.
    pub fn open(name: &str) -> Result<Self, Problem> {
        let library = Library::open(name, LAPACK_PACKAGES)?;
        let address = library.function(c"dgetrf_")?;
        let dgetri = library.function(c"dgetri_")?;
        Ok(Self {
            address,
            // SAFETY: these are the signatures in every LAPACK with 32-bit integers.
            dgetrf: unsafe { std::mem::transmute::<*mut c_void, Dgetrf>(address) },
            // SAFETY: as above.
            dgetri: unsafe { std::mem::transmute::<*mut c_void, Dgetri>(dgetri) },
            blas: Blas::within(&library)?,
        })
    }

    /// The file that the factorisation comes from.
    pub fn file(&self) -> String {
        file_of(self.address)
    }

    /// Inverts a matrix (size × size) in place; a singular one is an error.
    pub fn invert(&self, matrix: &mut [f64], size: usize) -> Result<(), Problem> {
        assert_eq!(matrix.len(), size * size);
        let n = in_fortran(size);
        let mut pivots: Vec<c_int> = vec![0; size];
        let mut failed = 0;
        // SAFETY: the matrix is n × n and there are n pivots.
        unsafe {
            (self.dgetrf)(
                &raw const n,
                &raw const n,
                matrix.as_mut_ptr(),
                &raw const n,
                pivots.as_mut_ptr(),
                &raw mut failed,
            );
        }
        if failed == 0 {
            let work_length = self.inverse(matrix, &pivots, n, &mut [0.0], -1).1;
            // The first element of the work space has the length that it needs.
            let mut work = vec![0.0; work_length];
            let length = in_fortran(work.len());
            failed = self.inverse(matrix, &pivots, n, &mut work, length).0;
        }
        if failed != 0 {
            return Err(Problem::failure(format!(
                "the matrix cannot be inverted (LAPACK says {failed})"
            )));
        }
        Ok(())
    }

    /// Calls dgetri; returns its status and the work space that it needs.
    fn inverse(
        &self,
        matrix: &mut [f64],
        pivots: &[c_int],
        size: c_int,
        work: &mut [f64],
        length: c_int,
    ) -> (c_int, usize) {
        let mut failed = 0;
        // SAFETY: the matrix is size × size with `size` pivots. The work space has `length`
        // elements, or one if `length` is -1, which asks for the length needed.
        unsafe {
            (self.dgetri)(
                &raw const size,
                matrix.as_mut_ptr(),
                &raw const size,
                pivots.as_ptr(),
                work.as_mut_ptr(),
                &raw const length,
                &raw mut failed,
            );
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let work_length = work[0].max(f64::from(size)) as usize;
        (failed, work_length)
    }
}

fn in_fortran(size: usize) -> c_int {
    c_int::try_from(size).expect("the options keep sizes below 2^15")
}

#[cfg(test)]
pub mod tests {
    use super::{Blas, Dgemm};
    use std::ffi::{c_char, c_int, c_void};

    /// A small BLAS for tests without a library: only the function that `multiply` needs.
    pub fn plain() -> Blas {
        Blas {
            address: plain_dgemm as *mut c_void,
            dgemm: plain_dgemm as Dgemm,
        }
    }

    unsafe extern "C" fn plain_dgemm(
        _: *const c_char,
        _: *const c_char,
        m: *const c_int,
        n: *const c_int,
        k: *const c_int,
        _: *const f64,
        left: *const f64,
        left_step: *const c_int,
        right: *const f64,
        right_step: *const c_int,
        _: *const f64,
        product: *mut f64,
        step: *const c_int,
        _: usize,
        _: usize,
    ) {
        let size = |number: *const c_int| {
            // SAFETY: the caller gives valid numbers.
            usize::try_from(unsafe { *number }).unwrap()
        };
        for row in 0..size(m) {
            for column in 0..size(n) {
                // SAFETY: the caller gives matrices of these sizes.
                unsafe {
                    *product.add(row + column * size(step)) = (0..size(k))
                        .map(|inner| {
                            *left.add(row + inner * size(left_step))
                                * *right.add(inner + column * size(right_step))
                        })
                        .sum();
                }
            }
        }
    }

    #[test]
    fn sizes_and_leading_dimensions_are_those_of_fortran() {
        // Columns one after another: (1 2 3; 4 5 6) times (7 8; 9 10; 11 12), by hand.
        let left = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        let right = [7.0, 9.0, 11.0, 8.0, 10.0, 12.0];
        let mut product = [0.0; 4];
        plain().multiply((2, 3, 2), &left, &right, &mut product);
        assert_eq!(product[..], [58.0, 139.0, 64.0, 154.0]);
    }
}
