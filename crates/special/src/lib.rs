//! Special functions of statistics: Student's t distribution.

mod student;

pub use student::Student;
