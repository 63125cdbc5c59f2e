//! Special functions: the only home of Student's t distribution.

mod student;

pub use student::Student;
