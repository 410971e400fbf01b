#!/usr/bin/env python3
"""Draws the five pictures of the image server into `images/`, the same bytes on every machine.

All arithmetic is on whole numbers, so that no library of mathematics has a say in it.
"""

from math import isqrt
from pathlib import Path


def mix(one, other, part, whole):
    """The colour that lies `part` of `whole` on the way from one to the other."""
    return tuple((a * (whole - part) + b * part) // whole for a, b in zip(one, other))


def wave(at, length, height):
    """A wave of parabolas: from -height to height and back within `length`."""
    half = length // 2
    phase, sign = at % half, 1 if at % length < half else -1
    return sign * 4 * height * phase * (half - phase) // (half * half)


def grain(x, y, seed):
    """A number of 0 to 255 that looks random and is not."""
    value = (x * 374761393 + y * 668265263 + seed * 2246822519) & 0xFFFFFFFF
    value = ((value ^ (value >> 13)) * 1274126177) & 0xFFFFFFFF
    return (value ^ (value >> 16)) & 0xFF


def distance(x, y, to_x, to_y):
    return isqrt((x - to_x) ** 2 + (y - to_y) ** 2)


def hills(x, y, width, height):
    """Five ridges in the mist, the nearest the darkest."""
    colour = mix((250, 214, 165), (255, 243, 222), y, height)
    for ridge in range(5):
        crest = height * (3 + ridge) // 9 + wave(x + 37 * ridge, 64 + 13 * ridge, 7) + wave(x * 3 + 11 * ridge, 82, 2)
        if y > crest:
            colour = mix((190, 170, 190), (38, 50, 72), ridge + 1, 5)
    return colour


def moon(x, y, width, height):
    """A moon with its light on the sea."""
    horizon = height * 2 // 3
    far = distance(x, y, width * 2 // 3, height // 3)
    if y < horizon:
        if far < height // 6:
            return mix((255, 250, 230), (214, 204, 180), grain(x // 3, y // 3, 1), 600)
        sky = mix((8, 12, 34), (46, 56, 104), y, horizon)
        glow = max(0, height // 2 - far)
        star = grain(x, y, 2) > 253
        return (235, 235, 245) if star else mix(sky, (160, 160, 190), glow, height)
    sea = mix((30, 40, 80), (6, 10, 26), y - horizon, height - horizon)
    lit = abs(x - width * 2 // 3 + wave(y * 7, 24, 4)) < 3 + (y - horizon) // 4 and wave(y * 5, 14, 8) > -3
    return mix(sea, (230, 224, 200), 2, 3) if lit else sea


def pond(x, y, width, height):
    """Rings of two drops that cross each other."""
    rings = wave(distance(x, y, width // 3, height // 2), 14, 60) + wave(distance(x, y, width * 3 // 4, height // 3), 18, 60)
    return mix((10, 62, 84), (196, 236, 232), rings + 120, 240)


def meadow(x, y, width, height):
    """Flowers, each in a square of its own."""
    size = 16
    column, row = x // size, y // size
    centre_x = column * size + 5 + grain(column, row, 3) % 7
    centre_y = row * size + 5 + grain(column, row, 4) % 7
    far = distance(x * 2, y * 2, centre_x * 2, centre_y * 2)
    petals = [(232, 72, 85), (249, 200, 14), (240, 240, 250), (134, 97, 193)][grain(column, row, 5) % 4]
    if far < 3:
        return (250, 220, 90)
    if far < 9 and (abs(x - centre_x) < 2 or abs(y - centre_y) < 2 or far < 5):
        return petals
    return mix((44, 110, 54), (110, 170, 70), grain(x, y // 3, 6), 255)


def weir(x, y, width, height):
    """The dam: still water above, white water below, and the gate that steers it."""
    crest = height * 2 // 5
    gate = width // 2 - 8 < x < width // 2 + 8
    if y < crest - 4:
        return mix((168, 212, 230), (60, 120, 160), y + wave(x, 40, 3) + 4, crest + 8)
    if y < crest:
        return (60, 44, 34) if gate else (120, 110, 100)
    if y < height * 3 // 5 and not gate:
        return mix((96, 88, 80), (58, 52, 48), grain(x // 6, y // 4, 7), 400)
    foam = grain(x, y // 2, 8) + (y - crest) * (2 if gate else -1)
    return (240, 248, 250) if foam > 215 else mix((52, 108, 140), (28, 66, 92), y - crest, height - crest)


PICTURES = [
    ("hills", 160, 120, "P6", hills),
    ("moon", 144, 108, "P6", moon),
    ("pond", 128, 128, "P6", pond),
    ("meadow", 112, 112, "P6", meadow),
    ("weir", 96, 72, "P3", weir),
]


def write(path, width, height, form, picture):
    header = f"{form}\n# drawn by draw.py\n{width} {height}\n255\n".encode()
    rows = [[picture(x, y, width, height) for x in range(width)] for y in range(height)]
    if form == "P6":
        raster = bytes(sample for row in rows for pixel in row for sample in pixel)
    else:
        # A plain PPM has no line above 70 characters: five pixels take 59.
        lines = (row[at:at + 5] for row in rows for at in range(0, width, 5))
        raster = "".join(" ".join(str(sample) for pixel in line for sample in pixel) + "\n" for line in lines).encode()
    path.write_bytes(header + raster)


if __name__ == "__main__":
    images = Path(__file__).parent / "images"
    images.mkdir(exist_ok=True)
    for name, *rest in PICTURES:
        write(images / f"{name}.ppm", *rest)
