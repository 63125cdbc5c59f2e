//! The data of the search: the table of `LaLonde`'s experiment (1986), or similar generated rows.
//!
//! The project contains no copy of the table; `equipoise_matching.matching.datasets.lalonde` writes
//! it. The generated rows have the same arms (treated and control), columns and numbers of ties.

use crate::problem::Problem;
use equipoise_random::Draws;

/// The columns that are matched, in the order of the example of the R package Matching.
pub const COVARIATES: [&str; 10] = [
    "age", "educ", "black", "hisp", "married", "nodegr", "u74", "u75", "re75", "re74",
];
/// Indices of the earnings of 1975 and 1974 in `COVARIATES`.
pub const RE75: usize = 8;
pub const RE74: usize = 9;
/// Name of the column that is 1 for a treated row, else 0.
const TREATMENT: &str = "treat";
/// Number of treated rows in the experiment.
const TREATED_ROWS: usize = 185;
/// Number of rows in the experiment.
const ROWS: usize = 445;

/// The table: the arm and the covariates of each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub treated: Vec<bool>,
    /// The values, row by row, with the columns in the order of `COVARIATES`.
    pub covariates: Vec<f64>,
}

impl Data {
    pub fn rows(&self) -> usize {
        self.treated.len()
    }

    pub fn row(&self, row: usize) -> &[f64] {
        &self.covariates[row * COVARIATES.len()..(row + 1) * COVARIATES.len()]
    }

    /// Reads a CSV file with a line of names and numeric fields without quotes.
    pub fn read(name: &str) -> Result<Self, Problem> {
        let text = std::fs::read_to_string(name)
            .map_err(|error| Problem::usage(format!("--data {name}: {error}")))?;
        Self::parse(&text).map_err(|message| Problem::usage(format!("--data {name}: {message}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate();
        let (_, header) = lines.next().ok_or("it is empty")?;
        let names: Vec<&str> = header
            .split(',')
            .map(|name| name.trim().trim_matches('"'))
            .collect();
        let index_of = |column: &str| {
            let index = names.iter().position(|&name| name == column);
            index.ok_or_else(|| format!("it has no column `{column}`"))
        };
        let treatment = index_of(TREATMENT)?;
        let indices = COVARIATES
            .map(index_of)
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        let mut data = Self {
            treated: Vec::new(),
            covariates: Vec::new(),
        };
        for (line_index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let fields: Vec<&str> = line.split(',').collect();
            let value = |index: usize| {
                fields
                    .get(index)
                    .and_then(|field| field.trim().parse::<f64>().ok())
                    .filter(|value| value.is_finite())
                    .ok_or_else(|| {
                        format!(
                            "line {}: `{}` is not a number",
                            line_index + 1,
                            names[index]
                        )
                    })
            };
            data.treated.push(value(treatment)? != 0.0);
            for &index in &indices {
                data.covariates.push(value(index)?);
            }
        }
        Ok(data)
    }

    /// Generates 445 rows with the arms of the experiment. Both arms have the same distributions of
    /// age, years of school and earnings.
    pub fn generate() -> Self {
        let draws = Draws::from_seed(1986);
        let mut covariates = Vec::with_capacity(ROWS * COVARIATES.len());
        for row in 0..ROWS {
            // Each row has 16 draws; not all are used.
            let draw = |index: u64| draws.uniform_at(row as u64 * 16 + index);
            let zero_or_one = |condition: bool| f64::from(u8::from(condition));
            let years = draw(1) * draw(2);
            let educ = (6.0 + 4.0 * draw(3) + 4.0 * draw(4)).floor();
            let black = draw(5) < 0.83;
            // Most people have no earnings, usually in both years; large earnings are rare.
            let earnings = |share_of_zeros: f64, index: u64| {
                if draw(index) < share_of_zeros {
                    0.0
                } else {
                    (200.0 + 24_000.0 * draw(index + 1) * draw(index + 2)).floor()
                }
            };
            let re74 = earnings(0.73, 8);
            let re75 = earnings(if re74 == 0.0 { 0.86 } else { 0.07 }, 11);
            covariates.extend([
                (17.0 + 39.0 * years).floor(),
                educ,
                zero_or_one(black),
                zero_or_one(!black && draw(6) < 0.5),
                zero_or_one(draw(7) < 0.17),
                zero_or_one(educ < 12.0),
                zero_or_one(re74 == 0.0),
                zero_or_one(re75 == 0.0),
                re75,
                re74,
            ]);
        }
        Self {
            treated: (0..ROWS).map(|row| row < TREATED_ROWS).collect(),
            covariates,
        }
    }

    /// Repeats the rows up to a number of rows, as the article did. It is an error if an arm has no
    /// row.
    pub fn repeated(&self, rows: usize) -> Result<Self, Problem> {
        let repeated = self.select_rows((0..self.rows()).cycle().take(rows));
        if repeated.treated.contains(&true) && repeated.treated.contains(&false) {
            return Ok(repeated);
        }
        Err(Problem::usage(format!(
            "--rows {rows}: all these rows are of one arm, treated or control"
        )))
    }

    pub fn select_rows(&self, rows: impl Iterator<Item = usize> + Clone) -> Self {
        Self {
            treated: rows.clone().map(|row| self.treated[row]).collect(),
            covariates: rows.flat_map(|row| self.row(row).to_vec()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COVARIATES, Data};

    const TABLE: &str = "\"re74\",re75,u75,u74,nodegr,married,hisp,black,educ,age,treat,re78
1,2,3,4,5,6,7,8,9,10,1,x
0,0,0,0,0,0,0,0,0,20,0,x
";

    #[test]
    fn columns_are_found_by_name_and_other_columns_are_ignored() {
        let data = Data::parse(TABLE).unwrap();
        assert_eq!(data.treated, [true, false]);
        assert_eq!(
            data.row(0),
            [10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
        );
        assert_eq!(data.row(1)[..2], [20.0, 0.0]);
    }

    #[test]
    fn an_error_names_the_wrong_column_or_line() {
        let wrong = [
            ("", "it is empty"),
            ("age,treat\n", "it has no column `educ`"),
            (
                &TABLE.replace(",20,", ",many,"),
                "line 3: `age` is not a number",
            ),
            (
                &TABLE.replace("\n0,", "\n,"),
                "line 3: `re74` is not a number",
            ),
            (
                &TABLE.replace(",0,x", ""),
                "line 3: `treat` is not a number",
            ),
        ];
        for (text, message) in wrong {
            assert_eq!(Data::parse(text).unwrap_err(), message);
        }
    }

    #[test]
    fn larger_data_repeat_the_same_rows() {
        let data = Data::generate();
        let repeated = data.repeated(2 * 445 + 3).unwrap();
        for row in 0..repeated.rows() {
            assert_eq!(repeated.row(row), data.row(row % 445));
            assert_eq!(repeated.treated[row], data.treated[row % 445]);
        }
        assert!(data.repeated(100).is_err(), "the first 185 are all treated");
    }

    #[test]
    fn generated_columns_have_the_values_of_the_experiment() {
        let data = Data::generate();
        let column = |name: &str| {
            let index = COVARIATES.iter().position(|&other| other == name).unwrap();
            let covariates = &data.covariates;
            (0..data.rows()).map(move |row| covariates[row * COVARIATES.len() + index])
        };
        for name in ["black", "hisp", "married", "nodegr", "u74", "u75"] {
            assert!(column(name).all(|value| [0.0, 1.0].contains(&value)));
        }
        assert!(column("re74").all(|value| value >= 0.0 && value.fract() == 0.0));
        assert!(column("age").all(|value| (17.0..=55.0).contains(&value)));
        let share = column("u74").sum::<f64>() / 445.0;
        // The limit is five standard errors.
        assert!((share - 0.73).abs() < 5.0 * (0.73_f64 * 0.27 / 445.0).sqrt());
        assert_eq!(data.treated.iter().filter(|&&treated| treated).count(), 185);
    }
}
