"""How questions of the `focus` kind are worded, and what is known about objects and actions beyond the scene graph.

Each kind of question has usual wordings and held-out ones. The held-out wordings never occur in training videos: they
are what "out of distribution by phrasing" means.
"""

from __future__ import annotations

# kind → (usual wordings, held-out wordings)
PHRASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "identify": (
        ("Which types of foreign object are visible at {t}?", "Name the foreign objects that can be seen at {t}."),
        ("List every foreign-object class in the picture at {t}.", "At {t}, what foreign material is in view?"),
    ),
    "visible": (
        ("Is {a_object} visible at {t}?", "Can {a_object} be seen at {t}?"),
        ("Does the picture at {t} show {a_object}?", "At {t}, would an observer see {a_object}?"),
    ),
    "match_class": (
        (
            "At {t}, match the objects (A: in the {where_a} of the image, B: in the {where_b}) with their class "
            "(1: {one}, 2: {two}).",
            "Assign each object at {t} (A in the {where_a}, B in the {where_b}) to its class (1: {one}, 2: {two}).",
        ),
        ("Two objects lie in view at {t}: A ({where_a}) and B ({where_b}). Pair each with 1 ({one}) or 2 ({two}).",),
    ),
    "held": (
        ("Is the {object} held by an instrument at {t}?", "At {t}, does an instrument hold the {object}?"),
        (
            "Is some instrument gripping the {object} at {t}?",
            "Would the {object} move along with an instrument at {t}?",
        ),
    ),
    "condition": (
        (
            "What is the state of the {object} at {t}? {options}",
            "Which description fits the {object} at {t}? {options}",
        ),
        ("Choose the condition of the {object} at {t}. {options}",),
    ),
    "quadrant": (
        (
            "In which part of the image is the {object} at {t}? {options}",
            "Where in the frame is the {object} at {t}? {options}",
        ),
        ("Point out the image quadrant that holds the {object} at {t}. {options}",),
    ),
    "situs": (
        (
            "On which structure does the {object} lie at {t}? {options}",
            "Which structure is the {object} lying on at {t}? {options}",
        ),
        ("Name the anatomy underneath the {object} at {t}. {options}",),
    ),
    "first_seen": (
        ("When is {a_object} first visible?", "At what time does {a_object} first come into view?"),
        ("Give the moment of the first appearance of {a_object}.", "From what time on has {a_object} been seen?"),
    ),
    "clip_times": (
        ("At which times are clips applied?", "When are clips applied in this segment?"),
        ("List the moments at which the clip applier closes a clip.",),
    ),
    "share": (
        (
            "During what percentage of the segment is {a_object} visible?",
            "For what share of the segment can {a_object} be seen, in percent?",
        ),
        ("What fraction of this segment shows {a_object}? Answer in percent.",),
    ),
    "count_objects": (
        (
            "How many distinct {objects} appear in this segment?",
            "How many different {objects} can be seen in this segment?",
        ),
        ("Give the number of individual {objects} that come into view.",),
    ),
    "count_classes": (
        (
            "How many classes of foreign object appear in this segment?",
            "How many different types of foreign object are seen in this segment?",
        ),
        ("Over the segment, what is the number of distinct foreign-object types in view?",),
    ),
    "most_at_once": (
        (
            "What is the largest number of foreign objects visible at the same time (stones spilled together are one)?",
            "How many foreign objects are in view at most at once? Count stones spilled together as one.",
        ),
        ("State the peak count of foreign objects in a single view, stones spilled together being one.",),
    ),
    "count_events": (
        (
            "How many times {does} the {instrument} {verb} something in this segment?",
            "How often {does} the {instrument} {verb} in this segment?",
        ),
        ("Count the occasions on which the {instrument} {is_} used to {verb}.",),
    ),
    "interaction": (
        ("What is happening to the {object} at {t}? {options}", "How is the {object} being handled at {t}? {options}"),
        ("Describe the handling of the {object} at {t}. {options}",),
    ),
    "applying": (
        ("Is a clip being applied at {t}?", "Is the clip applier placing a clip at {t}?"),
        ("Does a clip get closed around a structure at {t}?",),
    ),
    "purpose": (
        (
            "What is the foreign object in the {where} of the image at {t} used for?",
            "For what purpose is the foreign object in the {where} at {t} in the operating field?",
        ),
        ("Explain what the foreign object that lies {where} at {t} is there for.",),
    ),
    "order": (
        ("Does the {first} come before the {second}?", "Is the {first} earlier than the {second}?"),
        ("Did the {second} have to wait until after the {first}?", "Is the {second} preceded by the {first}?"),
    ),
    "sequence": (
        (
            "Put the events in order: A: {a}; B: {b}; C: {c}. Match each letter with its place (1 is the earliest).",
            "Match the events A: {a}; B: {b}; C: {c} with their order of occurrence (1 first, 3 last).",
        ),
        ("Rank A: {a}; B: {b}; C: {c} by the time they begin, 1 being the first.",),
    ),
    "why": (
        (
            "What {is_} the {instrument} used for at {t}? {options}",
            "Why {does} the {instrument} touch the tissue at {t}? {options}",
        ),
        ("State the goal of the work with the {instrument} at {t}. {options}",),
    ),
    "consequence": (
        (
            "What may happen if the object in the {where} of the image at {t} stays in the patient? {options}",
            "What is the risk if the object seen in the {where} at {t} is left behind by mistake? {options}",
        ),
        ("Suppose nobody accounts for the object that lies {where} at {t}. What is the likely harm? {options}",),
    ),
    "left_behind": (
        (
            "If the operation ended at {t}, would {a_object} be left in the patient?",
            "Would {a_object} remain in the patient if the surgeon closed at {t}?",
        ),
        ("Suppose the ports were closed at {t}: is {a_object} still inside?",),
    ),
    "inside": (
        (
            "How many foreign objects are inside the patient at {t}, seen or hidden? Stones spilled together are one.",
            "Counting hidden ones, and stones spilled together as one, how many foreign objects are inside at {t}?",
        ),
        (
            "Everything brought in, applied or spilled minus everything taken out: how many foreign objects does the "
            "patient hold at {t} (stones spilled together are one)?",
        ),
    ),
    "out_of_sight": (
        (
            "Which class of foreign object seen earlier is still inside at {t} but not visible?",
            "Which foreign objects are in the patient at {t} although they can no longer be seen?",
        ),
        ("At {t}, what was in view before and is now covered or out of view, but not taken out?",),
    ),
}

PURPOSE: dict[str, str] = {
    "sponge": "to absorb blood and fluid and to press on a bleeding site",
    "clip": "to close the cystic duct or a vessel",
    "specimen_bag": "to take the specimen out without spilling its content",
    "silicone_loop": "to encircle and hold aside a structure",
    "external_drain": "to let fluid drain out of the abdomen after the operation",
    "needle": "to place a suture",
    "gallstone": "it has no purpose: it was spilled from the gallbladder and should be taken out",
    "specimen": "it is the tissue that was removed and will be examined by the pathologist",
    "mesh": "to reinforce the abdominal wall",
    "absorbable_hemostatic_agent": "to stop diffuse bleeding from a raw surface",
}

HARM: dict[str, str] = {
    "sponge": "an infection around a forgotten textile",
    "clip": "a loose metal fragment in the abdomen",
    "specimen_bag": "a retained plastic bag with the specimen inside",
    "silicone_loop": "a structure that stays encircled and may be strangled",
    "needle": "an injury of bowel or vessels by a sharp point",
    "gallstone": "an abscess around a spilled stone",
    "specimen": "tissue that decays and is never examined",
}

REASON: dict[tuple[str, str], str] = {
    ("retract", ""): "to hold tissue aside and put it under tension",
    ("grasp", "specimen_bag"): "to keep the bag steady and its mouth open",
    ("grasp", ""): "to take hold of tissue before it is moved",
    ("dissect", ""): "to separate the structure from what surrounds it",
    ("coagulate", ""): "to stop bleeding and seal tissue with heat",
    ("clip", ""): "to close the structure so that it can be divided",
    ("cut", "adhesion"): "to free organs that have grown together",
    ("cut", ""): "to divide the structure",
    ("aspirate", ""): "to suck fluid and blood out of the view",
    ("irrigate", ""): "to rinse the operating field",
    ("pack", ""): "to put the removed organ into the bag",
}


def reason(verb: str, target: str) -> str:
    """Why this verb is done to this target."""
    return REASON.get((verb, target)) or REASON[(verb, "")]


def words(name: str) -> str:
    """A vocabulary name as it is written in a sentence.

    >>> words("abdominal_wall_cavity")
    'abdominal wall'
    """
    return {"abdominal_wall_cavity": "abdominal wall", "cystic_plate": "liver bed"}.get(name, name.replace("_", " "))


def with_article(noun: str) -> str:
    """`a` or `an` before a noun."""
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def deed(instrument: str, verb: str, target: str) -> str:
    """An action as a noun phrase.

    >>> deed("hook", "dissect", "cystic_duct")
    'dissection of the cystic duct with the hook'
    """
    noun = {
        "grasp": "grasping", "retract": "retraction", "dissect": "dissection", "coagulate": "coagulation",
        "clip": "clipping", "cut": "cutting", "aspirate": "aspiration", "irrigate": "irrigation", "pack": "packing",
    }[verb]  # fmt: skip
    return f"{noun} of the {words(target)} with the {words(instrument)}"
