//! Numbers of cells as their sheet shows them. Dates are written in one form, which reads the same everywhere.

/// The largest number that is shown in full; beyond it digits are invented.
const LARGEST: f64 = 1e15;

/// The most digits behind the point, which is Excel's own limit.
const MOST_DECIMALS: usize = 30;

/// Days from the first of January 1970 to the days from which sheets count.
const FROM_1900: i64 = -25_569;
const FROM_1904: i64 = -24_107;

/// The first day that is counted after a 29th of February 1900, which sheets have and the calendar has not.
const AFTER_LEAP: i64 = 60;

/// The last day of the year 9999.
const LAST_DAY: f64 = 2_958_466.0;

/// How the numbers of a cell are shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Format {
    /// As they are.
    #[default]
    General,
    /// With digits in a given number.
    Digits(Digits),
    /// As a day, a time of day, or both.
    Date { day: bool, time: bool, seconds: bool },
    /// As a time that goes on after 24 hours.
    Elapsed { seconds: bool },
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Digits {
    before: String,
    after: String,
    least: usize,
    most: usize,
    /// Digits in groups of three.
    grouped: bool,
    /// Powers of ten by which the number is multiplied.
    scale: i32,
}

impl Format {
    /// The format of a number that every program knows.
    pub fn known(id: usize) -> Self {
        Self::of(match id {
            1 => "0",
            2 => "0.00",
            3 | 5 | 6 | 37 | 38 | 41 | 42 => "#,##0",
            4 | 7 | 8 | 39 | 40 | 43 | 44 => "#,##0.00",
            9 => "0%",
            10 => "0.00%",
            14..=17 | 27..=31 | 36 | 50..=58 => "yyyy-mm-dd",
            18 | 20 | 32 | 34 => "h:mm",
            19 | 21 | 33 | 35 | 45 | 47 => "h:mm:ss",
            22 => "yyyy-mm-dd h:mm",
            46 => "[h]:mm:ss",
            _ => "General",
        })
    }

    /// The format that is spelled like this; of its parts for signs the first.
    pub fn of(code: &str) -> Self {
        if code.eq_ignore_ascii_case("general") {
            return Self::General;
        }
        Spelled::read(code).format()
    }

    /// A number as a cell shows it; letters that are no number stay as they are.
    pub fn shown(&self, raw: &str, from_1904: bool) -> String {
        let raw = raw.trim();
        let Some(number) = raw.parse().ok().filter(|number: &f64| number.is_finite()) else {
            return raw.to_owned();
        };
        match self {
            Self::Digits(digits) if number.abs() < LARGEST => digits.shown(number),
            Self::Date { day, time, seconds } if (0.0..LAST_DAY).contains(&number) => {
                let (days, second) = split(number);
                let parts = [
                    day.then(|| date(days, from_1904)),
                    time.then(|| clock(second, *seconds)),
                ];
                parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
            Self::Elapsed { seconds } if (0.0..LAST_DAY).contains(&number) => {
                let (days, second) = split(number);
                clock(days * 86_400 + second, *seconds)
            }
            _ => general(raw, number),
        }
    }
}

impl Digits {
    fn shown(&self, number: f64) -> String {
        let scaled = number.abs() * 10_f64.powi(self.scale);
        let mut digits = format!("{scaled:.*}", self.most);
        while digits.ends_with('0') && digits.len() - digits.find('.').map_or(digits.len(), |at| at + 1) > self.least {
            digits.pop();
        }
        let digits = digits.trim_end_matches('.');
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        let is_zero = digits.bytes().all(|digit| digit == b'0' || digit == b'.');
        let mut shown = String::from(if number < 0.0 && !is_zero { "-" } else { "" });
        shown.push_str(&self.before);
        for (at, digit) in whole.chars().enumerate() {
            if self.grouped && at > 0 && (whole.len() - at).is_multiple_of(3) {
                shown.push(',');
            }
            shown.push(digit);
        }
        if !decimals.is_empty() {
            shown.push('.');
            shown.push_str(decimals);
        }
        shown.push_str(&self.after);
        shown
    }
}

/// The signs of a format's first part.
#[derive(Default)]
struct Spelled {
    digits: Digits,
    /// True behind the first place of a digit, and behind the point.
    placed: bool,
    point: bool,
    /// Commas that stood behind the last place of a digit.
    commas: usize,
    day: bool,
    month: bool,
    time: bool,
    seconds: bool,
    elapsed: bool,
    /// True for fractions and powers, which are shown as they are.
    other: bool,
}

impl Spelled {
    fn read(code: &str) -> Self {
        let mut spelled = Self::default();
        let mut signs = code.chars();
        while let Some(sign) = signs.next() {
            match sign {
                ';' => break,
                '"' => {
                    let quoted: String = signs.by_ref().take_while(|sign| *sign != '"').collect();
                    spelled.literal(&quoted);
                }
                '\\' => spelled.literal(&signs.next().map(String::from).unwrap_or_default()),
                // A gap as wide as the sign, and a sign that fills the cell.
                '_' | '*' => drop(signs.next()),
                '[' => {
                    let within: String = signs.by_ref().take_while(|sign| *sign != ']').collect();
                    spelled.bracketed(&within);
                }
                _ => spelled.sign(sign),
            }
        }
        spelled
    }

    fn sign(&mut self, sign: char) {
        match sign {
            '0' | '#' | '?' => {
                self.digits.grouped |= std::mem::take(&mut self.commas) > 0;
                self.placed = true;
                if self.point {
                    self.digits.most = (self.digits.most + 1).min(MOST_DECIMALS);
                    if sign == '0' {
                        self.digits.least = self.digits.most;
                    }
                }
            }
            ',' if self.placed => self.commas += 1,
            '.' if self.placed && !self.point => self.point = true,
            '%' => {
                self.digits.scale += 2;
                self.literal("%");
            }
            'y' | 'Y' | 'd' | 'D' => self.day = true,
            'm' | 'M' => self.month = true,
            'h' | 'H' => self.time = true,
            's' | 'S' => (self.time, self.seconds) = (true, true),
            'E' | '/' | '@' if self.placed || sign == '@' => self.other = true,
            other => self.literal(&String::from(other)),
        }
    }

    fn bracketed(&mut self, within: &str) {
        let lower = within.to_ascii_lowercase();
        if let Some(currency) = within.strip_prefix('$') {
            self.literal(currency.split('-').next().unwrap_or_default());
        } else if !lower.is_empty() && lower.bytes().all(|sign| b"hms".contains(&sign)) {
            self.elapsed = true;
            self.seconds |= lower.contains('s');
        }
    }

    fn literal(&mut self, letters: &str) {
        match self.placed {
            true => self.digits.after.push_str(letters),
            false => self.digits.before.push_str(letters),
        }
    }

    fn format(mut self) -> Format {
        let seconds = self.seconds;
        if self.elapsed {
            return Format::Elapsed { seconds };
        }
        if self.day || self.month || self.time {
            // Beside hours or seconds, months are minutes.
            let day = self.day || !self.time;
            let time = self.time;
            return Format::Date { day, time, seconds };
        }
        if self.other || !self.placed {
            return Format::General;
        }
        // Commas behind all digits leave out thousands.
        self.digits.scale -= 3 * i32::try_from(self.commas).unwrap_or(0).min(5);
        self.digits.scale = self.digits.scale.clamp(-15, 15);
        Format::Digits(self.digits)
    }
}

/// A number without the digits that its binary form adds.
fn general(raw: &str, number: f64) -> String {
    let is_short = raw.len() <= 15 && !raw.contains(['e', 'E']);
    if is_short {
        return raw.to_owned();
    }
    let rounded = format!("{number:.14e}").parse().unwrap_or(number);
    match rounded == 0.0 || (1e-9..LARGEST).contains(&rounded.abs()) {
        true => rounded.to_string(),
        false => format!("{rounded:e}"),
    }
}

/// The day of a number and the second of that day.
fn split(number: f64) -> (i64, i64) {
    #[allow(clippy::cast_possible_truncation)]
    let seconds = (number * 86_400.0).round() as i64;
    (seconds.div_euclid(86_400), seconds.rem_euclid(86_400))
}

fn clock(second: i64, seconds: bool) -> String {
    let (hour, minute) = (second / 3600, second / 60 % 60);
    match seconds {
        true => format!("{hour:02}:{minute:02}:{:02}", second % 60),
        false => format!("{hour:02}:{minute:02}"),
    }
}

/// A day of the calendar, counted in eras of 400 years that begin in March.
fn date(days: i64, from_1904: bool) -> String {
    let since_1970 = match from_1904 {
        true => days + FROM_1904,
        false => days + FROM_1900 + i64::from(days < AFTER_LEAP),
    };
    let from_march = since_1970 + 719_468;
    let (era, day_of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_their_formats_say() {
        for (code, raw, shown) in [
            ("General", "0.30000000000000004", "0.3"),
            ("General", "42", "42"),
            ("General", "1E-3", "0.001"),
            ("General", "1.5E300", "1.5e300"),
            ("0.00", "1234.5", "1234.50"),
            ("#,##0.00", "-1234567.891", "-1,234,567.89"),
            ("#,##0", "999", "999"),
            ("0.0#", "2.500", "2.5"),
            ("0%", "0.256", "26%"),
            ("\"$\"#,##0.00;[Red]\\-\"$\"#,##0.00", "1200", "$1,200.00"),
            ("#,##0.00\\ [$€-407]", "3.5", "3.50 €"),
            ("_(* #,##0_)", "7", "7"),
            ("#,##0,", "1234567", "1,235"),
            ("0.00", "-0.001", "0.00"),
            ("# ?/?", "0.5", "0.5"),
            ("0.00E+00", "12345", "12345"),
            ("@", "7", "7"),
            ("0.00", "n/a", "n/a"),
            ("0", "1e300", "1e300"),
            ("yyyy-mm-dd", "45356", "2024-03-05"),
            ("[$-409]d\\-mmm\\-yy;@", "45351", "2024-02-29"),
            ("m/d/yy h:mm", "45356.604166666664", "2024-03-05 14:30"),
            ("h:mm AM/PM", "0.75", "18:00"),
            ("mm:ss.0", "0.5", "12:00:00"),
            ("[h]:mm", "1.5", "36:00"),
            ("mmmm", "1", "1900-01-01"),
            ("yyyy", "61", "1900-03-01"),
            ("yyyy", "-5", "-5"),
            ("yyyy", "99999999", "99999999"),
        ] {
            assert_eq!(Format::of(code).shown(raw, false), shown, "{code} {raw}");
        }
        assert_eq!(Format::known(14).shown("0", true), "1904-01-01");
        assert_eq!(Format::known(22).shown("45355.999999999", false), "2024-03-05 00:00");
        assert_eq!(Format::known(9999), Format::General);
    }

    #[test]
    fn formats_of_any_letters_end() {
        for code in [
            "\"",
            "\\",
            "[",
            "_",
            "*",
            "[$",
            ".",
            ",,,,,,,,,,,,0",
            "0,,,,,,,,,,,,",
            "%%%%%%%%%%%%0",
            "é;é",
        ] {
            let shown = Format::of(code).shown("123456.789", false);
            assert!(shown.len() < 100, "{code}: {shown}");
        }
        assert!(Format::of(&format!("0.{}", "0".repeat(900))).shown("1", false).len() < 40);
    }
}
