"""Admission by policies in CEL: ValidatingAdmissionPolicy and MutatingAdmissionPolicy."""
