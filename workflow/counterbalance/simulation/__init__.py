"""Planted respondents and the cells they answer, shared by power analysis and the validation study."""
