//! Products and inverses of matrices by the system's BLAS and LAPACK, opened at run time.
//!
//! The Fortran interface of the reference implementation (netlib.org/blas, netlib.org/lapack):
//! columns one after another, 32-bit integers, lengths of character arguments at the end.

use std::ffi::{c_char, c_int, c_void};

use crate::library::{Library, file_of};
use crate::problem::Problem;

/// The soname that every BLAS of Debian provides.
pub const BLAS: &str = "libblas.so.3";
/// The soname that every LAPACK of Debian provides.
pub const LAPACK: &str = "liblapack.so.3";

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
    ///
    /// # Errors
    /// If there is no such library, or it has no `dgemm_`.
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
    ///
    /// # Panics
    /// If a length is not what the sizes say.
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
        // SAFETY: the three arrays are as long as the sizes and leading dimensions say.
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
    /// Opens the library by name or path.
    ///
    /// # Errors
    /// If there is no such library, or it lacks a function.
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

    /// The matrix (size × size) becomes its inverse.
    ///
    /// # Errors
    /// If it is singular.
    ///
    /// # Panics
    /// If its length is not the square of `size`.
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
            let wanted = self.inverse(matrix, &pivots, n, &mut [0.0], -1).1;
            // The first element of the work space says how long it should be.
            let mut work = vec![0.0; wanted];
            let length = in_fortran(work.len());
            failed = self.inverse(matrix, &pivots, n, &mut work, length).0;
        }
        if failed == 0 {
            Ok(())
        } else {
            Err(Problem::failure(format!(
                "the matrix cannot be inverted (LAPACK says {failed})"
            )))
        }
    }

    /// One call of dgetri: what it says, and how much work space it wants.
    fn inverse(
        &self,
        matrix: &mut [f64],
        pivots: &[c_int],
        size: c_int,
        work: &mut [f64],
        length: c_int,
    ) -> (c_int, usize) {
        let mut failed = 0;
        // SAFETY: the matrix is size × size with as many pivots, and the work space is as long
        // as `length` says, or one element long if that is -1, which asks for its length.
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
        let wanted = work[0].max(f64::from(size)) as usize;
        (failed, wanted)
    }
}

fn in_fortran(size: usize) -> c_int {
    c_int::try_from(size).expect("the options keep sizes below 2^15")
}
