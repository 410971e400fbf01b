//! The modules `int` and `float` at their bounds.

use weir_library::{float, int};

#[test]
fn results_that_do_not_fit_are_failures() {
    assert!(int::abs(i64::MIN).0.is_err());
    assert_eq!(int::abs(-3).0, Ok(3));
    assert!(int::power(2, 63).0.is_err());
    assert_eq!(int::power(2, 62).0, Ok(1 << 62));
    assert_eq!(int::power(-2, 63).0, Ok(i64::MIN));
    let failure = int::power(7, -1).0.unwrap_err();
    assert_eq!(failure.message.as_str(), "7 to the power of -1 is no whole number");
    assert!(int::power(0, -1).0.is_err() && int::power(2, i64::MIN).0.is_err());
    assert_eq!([int::power(1, i64::MIN).0, int::power(-1, i64::MIN).0, int::power(-1, -3).0], [Ok(1), Ok(1), Ok(-1)]);
}

#[test]
fn a_great_exponent_is_computed_at_once() {
    assert_eq!(int::power(-1, i64::MAX).0, Ok(-1));
    assert_eq!(int::power(1, i64::MAX).0, Ok(1));
    assert_eq!(int::power(0, i64::MAX).0, Ok(0));
    assert!(int::power(2, i64::MAX).0.is_err());
}

#[test]
fn shifts_have_no_bounds() {
    assert_eq!(int::shift_left(1, 63), i64::MIN);
    assert_eq!((int::shift_left(1, 64), int::shift_left(1, i64::MAX), int::shift_left(1, -1)), (0, 0, 1));
    assert_eq!((int::shift_right(-8, 1), int::shift_right(-8, i64::MAX), int::shift_right(8, -1)), (-4, -1, 8));
    assert_eq!(int::bit_xor(int::bit_and(12, 10), int::bit_or(12, 10)), 6);
    assert_eq!((int::bit_not(0), int::count_ones(-1)), (-1, 64));
}

#[test]
fn a_float_that_fits_is_converted() {
    assert_eq!(float::to_int(2.9), Some(2));
    assert_eq!(float::to_int(-2.9), Some(-2));
    assert_eq!(float::to_int(i64::MIN as f64), Some(i64::MIN));
    assert_eq!(float::to_int(i64::MAX as f64), None);
    assert_eq!((float::to_int(f64::NAN), float::to_int(f64::INFINITY)), (None, None));
    assert_eq!(float::to_int(float::round(2.5)), Some(3));
}

#[test]
fn bounds_may_be_in_the_wrong_order() {
    assert_eq!((float::clamp(5.0, 1.0, 3.0), float::clamp(2.0, 3.0, 1.0)), (3.0, 1.0));
}

#[test]
fn a_modulo_has_the_sign_of_the_divisor() {
    let cases = [
        (7, 3, 1),
        (-7, 3, 2),
        (7, -3, -2),
        (-7, -3, -1),
        (6, -3, 0),
        (i64::MIN, -1, 0),
        (i64::MIN, i64::MAX, i64::MAX - 1),
    ];
    for (int, divisor, wanted) in cases {
        assert_eq!(int::modulo(int, divisor).0, Ok(wanted), "{int} modulo {divisor}");
    }
    assert!(int::modulo(1, 0).0.is_err());
}

#[test]
fn floats_are_added_and_have_logarithms() {
    assert_eq!((float::sum(&[]), float::sum(&[1.5, 2.0])), (0.0, 3.5));
    assert_eq!((float::exponential(0.0), float::logarithm(1.0)), (1.0, 0.0));
    assert!(float::logarithm(-1.0).is_nan());
}

#[test]
fn quotients_are_rounded_down() {
    for (int, divisor, wanted) in
        [(7, 2, 3), (-7, 2, -4), (7, -2, -4), (-7, -2, 3), (-6, 2, -3), (i64::MIN, 1, i64::MIN)]
    {
        assert_eq!(int::floor_divide(int, divisor).0, Ok(wanted), "{int} by {divisor}");
    }
    assert!(int::floor_divide(1, 0).0.is_err() && int::floor_divide(i64::MIN, -1).0.is_err());
}

#[test]
fn numbers_have_divisors_digits_and_bases() {
    assert_eq!([int::gcd(12, -18).0, int::gcd(0, 5).0, int::gcd(0, 0).0], [Ok(6), Ok(5), Ok(0)]);
    assert!(int::gcd(i64::MIN, 0).0.is_err() && int::gcd(i64::MIN, 2).0 == Ok(2));
    assert_eq!([int::sign(-3), int::sign(0), int::sign(9)], [-1, 0, 1]);
    assert_eq!([int::digits(-120), int::digits(0)], [vec![1, 2, 0], vec![0]]);
    for (int, base) in [(255, 16), (-1295, 36), (0, 2), (i64::MIN, 2), (i64::MAX, 36), (i64::MIN, 10)] {
        let written = int::to_base(int, base).0.expect("a base");
        assert_eq!(weir_library::text::parse_int(&written, base).ok(), Some(int), "{written}");
    }
    assert!([1, 37, -2, i64::MIN].iter().all(|base| int::to_base(1, *base).0.is_err()));
}

#[test]
fn angles_are_radians() {
    let is_near = |one: f64, other: f64| (one - other).abs() < 1e-12;
    let quarter = float::pi() / 2.0;
    assert!(is_near(float::sine(quarter), 1.0) && is_near(float::cosine(quarter), 0.0));
    assert!(is_near(float::tangent(quarter / 2.0), 1.0));
    assert!(is_near(float::arc_sine(1.0), quarter) && is_near(float::arc_cosine(0.0), quarter));
    assert!(
        is_near(float::arc_tangent(1.0, 1.0), quarter / 2.0) && is_near(float::arc_tangent(0.0, -1.0), float::pi())
    );
    assert!(float::arc_sine(1.1).is_nan());
}
