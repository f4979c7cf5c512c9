"""What the `intent` questions know of surgery: aims, checks, things to watch, and how everything is called.

All tables are keyed by verb and, where the target matters, by target; an empty target is the general case.
"""

from __future__ import annotations

from surgeval.phantom.questions.phrases import words

PHASES = {
    "Preparation": "preparation",
    "CalotTriangleDissection": "dissection of Calot's triangle",
    "ClippingCutting": "clipping and cutting",
    "GallbladderDissection": "dissection of the gallbladder",
    "GallbladderPackaging": "packaging of the gallbladder",
    "CleaningCoagulation": "cleaning and coagulation",
    "GallbladderRetraction": "retraction of the gallbladder",
}

GERUND = {
    "grasp": "grasping", "retract": "retracting", "dissect": "dissecting", "coagulate": "coagulating",
    "clip": "clipping", "cut": "cutting", "aspirate": "aspirating", "irrigate": "irrigating", "pack": "packing",
}  # fmt: skip

_TUBES = ("cystic_duct", "cystic_artery", "cystic_pedicle", "blood_vessel")
_BOWEL_SIDE = ("omentum", "adhesion", "gut", "peritoneum")

CHECK = {
    "clip": "that the structure is free on all sides and identified",
    "cut tube": "that clips are closed on both sides of the cut",
    "cut": "that no bowel lies behind the tissue in the blades",
    "dissect": "that the tip stays in the plane between the layers",
    "coagulate": "that the bleeding point itself is between the tips",
    "retract": "that the grip does not tear the stretched tissue",
    "grasp": "that the jaws hold nothing but what I want to hold",
    "grasp specimen_bag": "that the mouth of the bag is open and in view",
    "aspirate": "that the suction opening does not draw in tissue",
    "irrigate": "that the rinsing fluid can be sucked off again",
    "pack": "that all of the specimen is in before closing the bag",
}

WATCH = {
    "clip": "the common bile duct, which must stay out of the jaws",
    "cut tube": "the stumps, which must not bleed or leak bile",
    "cut": "the bowel wall, which lies right behind the tissue",
    "dissect": "the liver surface, which must not be entered",
    "dissect tube": "the bile duct, which runs close to the work",
    "dissect bowel": "the gut, which can be stuck to what I free",
    "coagulate": "the spread of heat, which can harm neighbours",
    "retract": "the stretched tissue, which can pale or tear",
    "grasp": "the tips of the jaws, which can perforate",
    "grasp specimen_bag": "the rim of the bag, which can slip or twist",
    "aspirate": "the fluid level, which tells of new bleeding",
    "irrigate": "the clots, which float up when it is rinsed",
    "pack": "the specimen, which can tear and spill bile",
}

THINGS = {
    "grasper": "the grasper, which holds tissue",
    "bipolar": "the bipolar forceps, which seals tissue",
    "hook": "the hook, which dissects with current",
    "scissors": "the scissors, which divide tissue",
    "clipper": "the clip applier, which closes a structure",
    "irrigator": "the irrigator, which rinses and sucks",
    "specimen_bag": "the specimen bag, which takes the organ",
    "sponge": "the sponge, which soaks up blood",
    "clip": "the clip, which keeps a structure closed",
    "silicone_loop": "the silicone loop, which marks a structure",
    "external_drain": "the drain, which leads fluid out",
    "needle": "the needle, which carries the suture",
    "gallstone": "the gallstone, which has been spilled",
    "specimen": "the specimen, which is to be removed",
    "mesh": "the mesh, which covers a defect",
    "absorbable_hemostatic_agent": "the hemostatic fleece, which stops oozing",
    "liver": "the liver, which is dark and smooth",
    "gallbladder": "the gallbladder, which is pale and thin",
    "omentum": "the omentum, which is yellow and lobed",
    "gut": "the bowel, which is pink and round",
    "peritoneum": "the peritoneum, which covers the wall",
    "abdominal_wall_cavity": "the abdominal wall, which lies behind",
    "adhesion": "the adhesion, which ties organs together",
    "cystic_plate": "the liver bed, which is raw and red",
}


def keyed(table: dict[str, str], verb: str, target: str) -> str:
    """The entry for a verb on a target: the most particular one there is."""
    kind = "tube" if target in _TUBES else "bowel" if target in _BOWEL_SIDE else target
    return table.get(f"{verb} {kind}") or table[verb]


def deed_in_words(instrument: str, verb: str, target: str) -> str:
    """An action as an infinitive.

    >>> deed_in_words("clipper", "clip", "cystic_duct")
    'clip the cystic duct with the clipper'
    """
    return f"{verb} the {words(target)} with the {words(instrument)}"
