//! The listing of a region's code, for people: one line for each instruction, with registers as `r3`, slots as `s3`, and
//! targets of jumps as `->3`.

use std::fmt;

use weir_host::Argument;

use super::changes::{EntryChange, EntryUpdate, PushedCall, PushedWord, RoundEffect, StoredWord};
use super::code::{ElementWords, FieldOperand, Region, RegionOperand};
use super::instruction::{Instruction, TableIndex};
use super::shapes::Scalar;

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let constants = self.words.iter().map(|(register, word)| format!("r{register} = {}", word.cast_signed()));
        let constants: Vec<String> = constants.collect();
        if !constants.is_empty() {
            writeln!(f, "         {}", constants.join(", "))?;
        }
        for (at, instruction) in self.code.iter().enumerate() {
            writeln!(f, "  {at:>5}  {}", self.line(*instruction))?;
        }
        Ok(())
    }
}

impl Region {
    /// Returns the line of an instruction.
    fn line(&self, instruction: Instruction) -> String {
        let debug = format!("{instruction:?}");
        let (name, operands) = debug.split_once('(').unwrap_or((&debug, ""));
        let operands = operands.trim_end_matches(')').split(", ").filter(|operand| !operand.is_empty());
        let operands: Vec<String> =
            operands.zip(kinds(instruction).chars()).map(|(operand, kind)| self.operand(operand, kind)).collect();
        let line = format!("{:<21} {}", snake(name), operands.join(", "));
        format!("{line}{}", self.details(instruction)).trim_end().to_owned()
    }

    fn operand(&self, operand: &str, kind: char) -> String {
        let number = || operand.parse::<usize>().unwrap_or(0);
        match kind {
            'r' | 's' => format!("{kind}{operand}"),
            't' => format!("->{operand}"),
            'k' => Scalar::ALL.get(number()).map_or(String::new(), |scalar| format!("{scalar:?}")),
            'c' => self.constants.get(number()).map_or(String::new(), |constant| format!("{constant}")),
            'm' => self.tables.loops.get(number()).map_or(String::new(), |row| format!("r{}", row.count)),
            'l' => {
                self.tables.loops.get(number()).map_or(String::new(), |row| format!("r{} of s{}", row.count, row.list))
            }
            '.' => String::new(),
            _ => operand.to_owned(),
        }
    }

    /// Returns the row of the table that an instruction names.
    fn details(&self, instruction: Instruction) -> String {
        let tables = &self.tables;
        let at = |row: TableIndex| usize::from(row);
        match instruction {
            Instruction::Scalars(row) => {
                let row = &tables.scalars[at(row)];
                let operands = row.operands.iter().map(|(register, _)| format!("r{register}"));
                format!("r{}, {} {}", row.out, row.prim.name(), operands.collect::<Vec<_>>().join(", "))
            }
            Instruction::LoadRecord(row)
            | Instruction::StoreRecord(row)
            | Instruction::LoadElement(row, _)
            | Instruction::PushRecord(row) => {
                let row = &tables.records[at(row)];
                let registers = row.registers.iter().map(|register| format!("r{register}")).collect::<Vec<_>>();
                format!("s{}, ({})", row.slot, registers.join(", "))
            }
            Instruction::ElementWords(row) => {
                let ElementWords { row, fields } = &tables.element_words[at(row)];
                let fields = fields.iter().map(|(register, field)| format!("r{register} = {field}"));
                format!("{}: {}", self.operand(&row.to_string(), 'l'), fields.collect::<Vec<_>>().join(", "))
            }
            Instruction::Prim(row) => {
                let row = &tables.prims[at(row)];
                format!("s{}, {} {}", row.out, row.prim.name(), arguments(&row.operands))
            }
            Instruction::Call(row) => {
                let row = &tables.calls[at(row)];
                format!("{} {}", row.path, arguments(&row.arguments))
            }
            Instruction::Replace(row) => {
                let row = &tables.replacements[at(row)];
                format!("s{}, {} {}, {}", row.whole, row.call.path, operand(&row.key), operand(&row.value))
            }
            Instruction::AppendParts(row) => {
                let row = &tables.prims[at(row)];
                format!("s{}, {}", row.out, arguments(&row.operands))
            }
            Instruction::CallWords(_, row) => {
                let row = &tables.word_calls[at(row)];
                let registers = row.arguments.iter().map(|register| format!("r{register}")).collect::<Vec<_>>();
                format!(", {} {}", row.path, registers.join(", "))
            }
            Instruction::Rounds(row) => self.rounds(tables.rounds[at(row)].effect),
            Instruction::Switch(row) => self.arms(row),
            Instruction::JumpTable(_, row) => {
                let targets = tables.jumps[at(row)].iter().map(|target| format!("->{target}"));
                format!(": {}", targets.collect::<Vec<_>>().join(", "))
            }
            Instruction::Return(row) | Instruction::Fail(row) => arguments(&[tables.arguments[at(row)]]),
            other => other.again().map_or(String::new(), |row| {
                let row = &tables.loops[at(row)];
                let carry = row.carry.map_or(String::new(), |(to, from)| format!(", r{to} = r{from}"));
                format!("{carry}, ->{}", row.head)
            }),
        }
    }

    /// Returns the effect of rounds that run at once.
    fn rounds(&self, effect: RoundEffect) -> String {
        match effect {
            RoundEffect::Store(StoredWord { list, position, word, step, bound }) => {
                format!("s{list}[r{position}] = r{word}, r{position} += r{step}, while r{position} < r{bound}")
            }
            RoundEffect::Push(PushedWord { results, word }) => format!("push s{results}, r{word}"),
            RoundEffect::Call(PushedCall { call, element, results, .. }) => {
                let call = &self.tables.word_calls[usize::from(call)];
                let registers = call.arguments.iter().map(|register| format!("r{register}")).collect::<Vec<_>>();
                format!("push s{results}, {} {}, r{element} = element", call.path, registers.join(", "))
            }
        }
    }

    /// Returns the subject of a switch, and its arms.
    fn arms(&self, row: TableIndex) -> String {
        let row = &self.tables.switches[usize::from(row)];
        let arms = row.arms.iter().map(|arm| format!("{:?} ->{}", arm.test, arm.target));
        let subject = match &row.look_up {
            Some(look_up) => {
                let update = look_up.update.as_ref().map_or(String::new(), updated);
                format!("look_up {}, {}{update}", arguments(&[look_up.map]), operand(&look_up.key))
            }
            None => arguments(&[row.subject]),
        };
        format!("{subject}: {}", arms.collect::<Vec<_>>().join(", "))
    }
}

/// Returns what a look-up does with the entry that it finds, and where it goes then.
fn updated(update: &EntryUpdate) -> String {
    let change = match update.change {
        EntryChange::AddInt(register) | EntryChange::AddNotedInt(register, _) | EntryChange::AddFloat(register) => {
            format!("add r{register}")
        }
        EntryChange::Push(register, _) => format!("push r{register}"),
        EntryChange::PushValue(slot) => format!("push s{slot}"),
    };
    format!(", {change} ->{}", update.behind)
}

fn operand(operand: &RegionOperand) -> String {
    match operand {
        RegionOperand::Word(register, ..) => format!("r{register}"),
        RegionOperand::Value(argument) => arguments(&[*argument]),
        RegionOperand::Field(FieldOperand { list, count, field, .. }) => format!("(r{count} of s{list}).{field}"),
    }
}

fn arguments(arguments: &[Argument]) -> String {
    let one = |argument: &Argument| match argument {
        Argument::Slot { index, last: true } => format!("s{index} (last use)"),
        Argument::Slot { index, last: false } => format!("s{index}"),
        Argument::Constant(index) => format!("constant {index}"),
        Argument::Shared(index) => format!("shared {index}"),
    };
    arguments.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the kinds of an instruction's own operands: `r` register, `s` slot, `t` target, `k` scalar, `c` constant, `l`
/// loop over a list, `m` other loop, `n` number; `.` for a row that [`Region::details`] prints.
fn kinds(instruction: Instruction) -> &'static str {
    use Instruction::*;
    match instruction {
        Move(..) | Not(..) => "rr",
        Jump(_) => "t",
        JumpIf(..) | JumpUnless(..) => "rt",
        JumpIfEqual(..) | JumpIfNotEqual(..) | JumpIfLess(..) | JumpIfLessOrEqual(..) => "rrt",
        JumpIfLessFloat(..) | JumpIfLessOrEqualFloat(..) | JumpUnlessLessFloat(..) | JumpUnlessLessOrEqualFloat(..) => {
            "rrt"
        }
        JumpTable(..) => "r",
        Load(..) | Length(..) => "rs",
        Store(..) | Push(..) => "srk",
        LoadChoice(..) => "rn",
        StoreChoice(..) => "nr",
        TakeValue(..) | CloneValue(..) | PushValue(..) => "ss",
        BeginMap(_) => "s",
        Rounds(_) => "",
        EndFor(_) | BeginPart(_) | EndPart(_) => "n",
        LoadElement(..) => ".r",
        ConstantValue(..) => "sc",
        Clear(..) => "sn",
        Index(..) => "rsr",
        Field(..) => "rsn",
        CallWords(..) => "r",
        FirstWord(..) | NextWord(..) => "lrt",
        FirstElement(..) | NextElement(..) => "lt",
        ElementWord(..) => "rln",
        ElementField(..) | TakeElementField(..) => "sln",
        AgainUnless(..) => "mr",
        AgainUnlessEqual(..) | AgainUnlessNotEqual(..) | AgainUnlessLess(..) | AgainUnlessLessOrEqual(..) => "mrr",
        SetWord(..) => "srr",
        FirstValue(..) | NextValue(..) => "lst",
        Scalars(_) | ElementWords(_) | LoadRecord(_) | StoreRecord(_) | PushRecord(_) | Prim(_) | AppendParts(_)
        | Call(_) | Replace(_) | Switch(_) | Return(_) | Fail(_) | Nothing | Never | End => "",
        _ => "rrr",
    }
}

/// Returns a name in words with underscores between them.
fn snake(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
