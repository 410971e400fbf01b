//! Properties of every layout, on random inputs.

use proptest::prelude::*;

use super::{Extent, LayeredLayout, LayoutInput, Point, layered};

fn sketches() -> impl Strategy<Value = LayoutInput> {
    let boxes = prop::collection::vec((10.0..200.0_f64, 10.0..90.0_f64), 1..40);
    (boxes, prop::collection::vec((any::<u32>(), any::<u32>()), 0..80)).prop_map(|(boxes, pairs)| {
        let count = boxes.len();
        let edge = |(one, other): (u32, u32)| {
            let (one, other) = (one as usize % count, other as usize % count);
            (one != other).then(|| (one.min(other), one.max(other)))
        };
        LayoutInput {
            boxes: boxes.into_iter().map(|(width, height)| Extent { width, height }).collect(),
            edges: pairs.into_iter().filter_map(edge).collect(),
        }
    })
}

fn overlap(input: &LayoutInput, layout: &LayeredLayout, one: usize, other: usize) -> bool {
    let apart = |a: f64, b: f64, half: f64| (a - b).abs() >= half - 0.01;
    let (a, b) = (layout.centres[one], layout.centres[other]);
    let (first, second) = (input.boxes[one], input.boxes[other]);
    !apart(a.x, b.x, (first.width + second.width) / 2.0) && !apart(a.y, b.y, (first.height + second.height) / 2.0)
}

fn inside(point: Point, size: Extent) -> bool {
    point.x >= -0.01 && point.y >= -0.01 && point.x <= size.width + 0.01 && point.y <= size.height + 0.01
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_two_boxes_overlap(input in sketches()) {
        let layout = layered(&input);
        for one in 0..input.boxes.len() {
            for other in 0..one {
                prop_assert!(!overlap(&input, &layout, one, other), "boxes {one} and {other} overlap: {layout:?}");
            }
        }
    }

    #[test]
    fn every_edge_goes_down_inside_the_picture(input in sketches()) {
        let layout = layered(&input);
        prop_assert_eq!(layout.routes.len(), input.edges.len());
        for route in &layout.routes {
            prop_assert!(route.iter().all(|point| inside(*point, layout.size)), "{:?} leaves {:?}", route, layout.size);
            prop_assert!(route.windows(2).all(|pair| pair[0].y <= pair[1].y + 0.01), "{:?} goes up", route);
        }
    }

    #[test]
    fn no_edge_passes_through_a_box(input in sketches()) {
        let layout = layered(&input);
        for (route, &(from, to)) in layout.routes.iter().zip(&input.edges) {
            // An edge goes straight down through the ranks that it passes, and does not meet boxes there.
            let straight = route.windows(2).filter(|pair| (pair[0].x - pair[1].x).abs() < 0.01);
            for pair in straight {
                for index in (0..input.boxes.len()).filter(|index| *index != from && *index != to) {
                    let (centre, size) = (layout.centres[index], input.boxes[index]);
                    let beside = (pair[0].x - centre.x).abs() >= size.width / 2.0 - 0.01;
                    let apart = pair[1].y <= centre.y - size.height / 2.0 + 0.01 || pair[0].y >= centre.y + size.height / 2.0 - 0.01;
                    prop_assert!(beside || apart, "edge {from} to {to} passes through box {index}");
                }
            }
        }
    }
}

#[test]
fn a_long_edge_is_straight() {
    let size = Extent { width: 60.0, height: 30.0 };
    let input = LayoutInput { boxes: vec![size; 5], edges: vec![(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)] };
    let layout = layered(&input);
    let long = &layout.routes[4];
    let inner = &long[2..long.len() - 2];
    assert!(inner.windows(2).all(|pair| (pair[0].x - pair[1].x).abs() < 0.01), "{long:?}");
}
