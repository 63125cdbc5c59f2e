//! The data: a table of the experiment of `LaLonde` (1986), or made-up rows like it.
//!
//! Nothing is copied into the project: `equipoise_matching.matching.datasets.lalonde` writes the real
//! table. The made-up rows have its arms, its kinds of columns and its many ties.

use crate::problem::Problem;
use equipoise_random::Draws;

/// The columns that are matched on, in the order of the example of the package Matching.
pub const COVARIATES: [&str; 10] = [
    "age", "educ", "black", "hisp", "married", "nodegr", "u74", "u75", "re75", "re74",
];
/// Places of the earnings among the covariates.
pub const RE75: usize = 8;
/// As above.
pub const RE74: usize = 9;
const TREATMENT: &str = "treat";
const TREATED: usize = 185;
const ROWS: usize = 445;

/// Units with their arm and their covariates.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Whether each row is treated.
    pub treated: Vec<bool>,
    /// Row after row, the columns in the order of `COVARIATES`.
    pub covariates: Vec<f64>,
}

impl Data {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.treated.len()
    }

    /// The covariates of the row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.covariates[row * COVARIATES.len()..(row + 1) * COVARIATES.len()]
    }

    /// Reads a CSV file with a line of names. Fields are numbers and are not quoted.
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
        let place = |column: &str| {
            let place = names.iter().position(|&name| name == column);
            place.ok_or_else(|| format!("it has no column `{column}`"))
        };
        let treatment = place(TREATMENT)?;
        let places = COVARIATES
            .map(place)
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        let mut data = Self {
            treated: Vec::new(),
            covariates: Vec::new(),
        };
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let fields: Vec<&str> = line.split(',').collect();
            let value = |place: usize| {
                fields
                    .get(place)
                    .and_then(|field| field.trim().parse::<f64>().ok())
                    .filter(|value| value.is_finite())
                    .ok_or_else(|| format!("line {}: `{}` is no number", index + 1, names[place]))
            };
            data.treated.push(value(treatment)? != 0.0);
            for &place in &places {
                data.covariates.push(value(place)?);
            }
        }
        Ok(data)
    }

    /// 445 rows with the arms of the experiment, and columns drawn from the same distribution in
    /// both: years of age and of school, whole earnings that are zero for most.
    pub fn made_up() -> Self {
        let source = Draws::new(1986);
        let mut covariates = Vec::with_capacity(ROWS * COVARIATES.len());
        for row in 0..ROWS {
            let drawn = |column: u64| source.uniform(row as u64 * 16 + column);
            let is = |yes: bool| f64::from(u8::from(yes));
            let years = drawn(1) * drawn(2);
            let educ = (6.0 + 4.0 * drawn(3) + 4.0 * drawn(4)).floor();
            let black = drawn(5) < 0.83;
            // Most people earned nothing, mostly in both years; small earnings are more frequent
            // than large ones.
            let earned = |zero: f64, first: u64| {
                if drawn(first) < zero {
                    0.0
                } else {
                    (200.0 + 24_000.0 * drawn(first + 1) * drawn(first + 2)).floor()
                }
            };
            let re74 = earned(0.73, 8);
            let re75 = earned(if re74 == 0.0 { 0.86 } else { 0.07 }, 11);
            covariates.extend([
                (17.0 + 39.0 * years).floor(),
                educ,
                is(black),
                is(!black && drawn(6) < 0.5),
                is(drawn(7) < 0.17),
                is(educ < 12.0),
                is(re74 == 0.0),
                is(re75 == 0.0),
                re75,
                re74,
            ]);
        }
        Self {
            treated: (0..ROWS).map(|row| row < TREATED).collect(),
            covariates,
        }
    }

    /// Repeats the rows up to a number, as the article made its larger data sets. It is an error if
    /// an arm has no row then.
    pub fn stacked(&self, rows: usize) -> Result<Self, Problem> {
        let stacked = self.of_rows((0..self.rows()).cycle().take(rows));
        if stacked.treated.contains(&true) && stacked.treated.contains(&false) {
            return Ok(stacked);
        }
        Err(Problem::usage(format!(
            "--rows {rows}: one arm has no row among them"
        )))
    }

    /// Returns the data of some rows, in their order.
    pub fn of_rows(&self, rows: impl Iterator<Item = usize> + Clone) -> Self {
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
    fn columns_are_found_by_name_and_others_ignored() {
        let data = Data::parse(TABLE).unwrap();
        assert_eq!(data.treated, [true, false]);
        assert_eq!(
            data.row(0),
            [10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
        );
        assert_eq!(data.row(1)[..2], [20.0, 0.0]);
    }

    #[test]
    fn what_is_wrong_with_a_table_is_said() {
        let wrong = [
            ("", "it is empty"),
            ("age,treat\n", "it has no column `educ`"),
            (
                &TABLE.replace(",20,", ",many,"),
                "line 3: `age` is no number",
            ),
            (&TABLE.replace("\n0,", "\n,"), "line 3: `re74` is no number"),
            (&TABLE.replace(",0,x", ""), "line 3: `treat` is no number"),
        ];
        for (text, message) in wrong {
            assert_eq!(Data::parse(text).unwrap_err(), message);
        }
    }

    #[test]
    fn larger_data_are_the_same_rows_again() {
        let data = Data::made_up();
        let stacked = data.stacked(2 * 445 + 3).unwrap();
        for row in 0..stacked.rows() {
            assert_eq!(stacked.row(row), data.row(row % 445));
            assert_eq!(stacked.treated[row], data.treated[row % 445]);
        }
        assert!(data.stacked(100).is_err(), "the first 185 are all treated");
    }

    #[test]
    fn made_up_rows_tie_as_often_as_the_kinds_of_their_columns_say() {
        let data = Data::made_up();
        let column = |name: &str| {
            let place = COVARIATES.iter().position(|&other| other == name).unwrap();
            let covariates = &data.covariates;
            (0..data.rows()).map(move |row| covariates[row * COVARIATES.len() + place])
        };
        for name in ["black", "hisp", "married", "nodegr", "u74", "u75"] {
            assert!(column(name).all(|value| [0.0, 1.0].contains(&value)));
        }
        assert!(column("re74").all(|value| value >= 0.0 && value.fract() == 0.0));
        assert!(column("age").all(|value| (17.0..=55.0).contains(&value)));
        let share = column("u74").sum::<f64>() / 445.0;
        // Five standard errors.
        assert!((share - 0.73).abs() < 5.0 * (0.73_f64 * 0.27 / 445.0).sqrt());
        assert_eq!(data.treated.iter().filter(|&&treated| treated).count(), 185);
    }
}
