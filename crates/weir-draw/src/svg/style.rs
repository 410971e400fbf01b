//! The colours and fonts of the SVG, for light and dark.

/// The font of words.
pub(super) const SANS: &str = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/// The hues, in degrees, that distinguish modules, in the order of their first appearance.
pub(super) const HUES: [u16; 7] = [212, 268, 158, 330, 28, 188, 48];

/// The style sheet.
pub(super) const STYLE: &str = r"<style>
:root { color-scheme: light dark; }
svg { --paper: #fbfbf9; --card: #ffffff; --ink: #1d2430; --soft: #6a7383; --line: #98a2b3; --edge: #d8dde6;
  --enter: #2563c9; --enter-ink: #ffffff; --good: #16794c; --good-card: #e6f5ed; --bad: #b8322a; --bad-card: #fdecea;
  --read: #0b7f86; --write: #c46a08; --fork: #eef2fb; --fork-edge: #8aa4d6; --step: #c46a08; --section: .1; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #14171c; --card: #1f242c; --ink: #e8ebf0; --soft: #949eae; --line: #66707f; --edge: #363d49;
    --enter: #3f7ddc; --enter-ink: #ffffff; --good: #5cc693; --good-card: #17301f; --bad: #f08379; --bad-card: #3a1c1a;
    --read: #45bcc4; --write: #eba04b; --fork: #20293a; --fork-edge: #5d79ad; --step: #eba04b; --section: .17; } }
.paper { fill: var(--paper); }
text { fill: var(--ink); font-size: 12px; }
.code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
.heading { font-size: 13px; font-weight: 600; fill: var(--soft); letter-spacing: .02em; }
.title { font-size: 13px; font-weight: 600; }
.over { font-size: 10.5px; fill: var(--soft); }
.card { fill: var(--card); stroke: var(--edge); }
.enter { fill: var(--enter); }
.enter-text { fill: var(--enter-ink); }
.enter-over { fill: var(--enter-ink); opacity: .82; font-size: 10.5px; }
.begin { fill: var(--card); stroke: var(--enter); }
.fork { fill: var(--fork); stroke: var(--fork-edge); }
.prim { fill: var(--paper); stroke: var(--edge); }
.prim-text { fill: var(--soft); font-size: 11px; }
.answer { fill: var(--good-card); stroke: var(--good); }
.answer-text { fill: var(--good); font-weight: 600; font-size: 11.5px; }
.failure { fill: var(--bad-card); stroke: var(--bad); }
.failure-text { fill: var(--bad); font-weight: 600; font-size: 11.5px; }
.frame { fill: none; stroke: var(--line); stroke-dasharray: 5 4; }
.frame-text { fill: var(--soft); font-size: 11.5px; font-weight: 600; }
.step { stroke: var(--step); stroke-dasharray: none; stroke-width: 1.5; }
.step-text { fill: var(--step); }
.edge { fill: none; stroke: var(--line); stroke-width: 1.4; }
.order { stroke-dasharray: 2 4; }
.head { fill: var(--line); }
.label { font-size: 11px; font-weight: 600; fill: var(--soft); paint-order: stroke; stroke: var(--paper); stroke-width: 4px;
  stroke-linejoin: round; }
.store { fill: var(--card); stroke: var(--line); }
.life { fill: none; stroke: var(--edge); stroke-width: 1.4; stroke-dasharray: 1 4; stroke-linecap: round; }
.read { fill: none; stroke: var(--read); stroke-width: 1.4; }
.read-head { fill: var(--read); }
.write { fill: none; stroke: var(--write); stroke-width: 1.4; }
.write-head { fill: var(--write); }
.section { opacity: var(--section); }
.tint0 { --tint: #2563c9; }
.tint1 { --tint: #0f9d8a; }
.tint2 { --tint: #b7791f; }
.tint3 { --tint: #9333c9; }
.tint4 { --tint: #c2346b; }
.section-name { font-style: italic; }
.section * { stroke-linejoin: round; stroke-linecap: round; }
.section rect { fill: var(--tint); }
.section path { fill: none; stroke: var(--tint); stroke-width: 40; }
</style>
";
